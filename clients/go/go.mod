module jobq

go 1.19

require github.com/jackc/pgconn v1.14.3
