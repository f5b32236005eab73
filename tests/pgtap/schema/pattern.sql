-- What patterns a payload schema may have: those that are matched in linear time.
begin;
select plan(31);

select is(
    jobq_private.schema_problem(jsonb_build_object('pattern', p.pattern), 'schema') is null,
    p.is_good, format('%s is %s', left(p.pattern, 60), case when p.is_good then 'good' else 'refused' end)
)
from (
    values
    ('^(a+)+$', true), ('^[A-Z]{2}[0-9]{30}$', true), ('^\d{3}-\d{4}$', true),
    ('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', true), ('^(([0-9]{1,3}\.){3}){2}$', true),
    ('a\\1', true), ('[\]1]', true), ('^.{1,255}$', true), ('(?:a|b)', true),
    ('^(a*)\1$', false), ('(a)(b)\2', false), ('^(?=.*x).*$', false), ('a(?!b)', false),
    ('(?<=a)b', false), ('(?<!a)b', false), ('((a{1,60}){1,60}){1,10}', false),
    ('(a{20}){20}', false), ('(a|b)*a((a|b){30}){30}c', false), ('(', false), ('a{300}', false),
    ('(?#[)^(a*)\1$(?#])', false), (E'(?x)a#[\n(?=b)#]', false), ('(?i)abc', true),
    ('(?b)[\]\(a*\)*\1[\]]', false), ('***=a', false), ('***:(?=a)', false),
    (repeat('a', 1001), false), (repeat('a', 1000), true)
) as p (pattern, is_good);

-- A text that no backtracking matcher gets to the end of, in this life
set local statement_timeout = '60 s';
select is(
    jobq_private.schema_violation(
        jsonb_build_object('pattern', p.pattern), to_jsonb(p.text), 'payload'
    ) is not null, true, format('%s ends on %s characters', p.pattern, length(p.text))
)
from (
    values
    ('^(a+)+$', repeat('a', 100000) || '!'), ('^(a|a)*$', repeat('a', 100000) || '!'),
    ('(a|b)*a(a|b){255}c', repeat('ab', 50000))
) as p (pattern, text);

select * from finish();
rollback;
