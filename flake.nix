{
  description = "jobq, a job queue in PostgreSQL: a shell with what its tests and tools need";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { nixpkgs, ... }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      devShells = each (pkgs: {
        default = pkgs.mkShell {
          packages = [
            (pkgs.postgresql_18.withPackages (extensions: [
              extensions.pgtap
              extensions.plpgsql_check
              extensions.plproxy
            ]))
            pkgs.chromium
            pkgs.gnumake
            pkgs.go
            pkgs.iproute2
            pkgs.iptables
            pkgs.libfaketime
            pkgs.nodejs
            pkgs.pgbouncer
            pkgs.prometheus
            pkgs.python311
            pkgs.redis
            (pkgs.ruby.withPackages (gems: [ gems.activejob gems.pg ]))
            pkgs.sqitchPg
          ];
        };
      });
    };
}
