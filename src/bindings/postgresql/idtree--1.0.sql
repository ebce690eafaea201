/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */
\echo Use "CREATE EXTENSION idtree" to load this file. \quit

-- --- the type: 64 bits, ordered without a sign ----------------------------------------------

CREATE TYPE fluid;

CREATE FUNCTION fluid_in (cstring) RETURNS fluid
    AS 'MODULE_PATHNAME', 'pg_fluid_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fluid_out (fluid) RETURNS cstring
    AS 'MODULE_PATHNAME', 'pg_fluid_out' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fluid_recv (internal) RETURNS fluid
    AS 'MODULE_PATHNAME', 'pg_fluid_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fluid_send (fluid) RETURNS bytea
    AS 'MODULE_PATHNAME', 'pg_fluid_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE fluid (INPUT = fluid_in, OUTPUT = fluid_out, RECEIVE = fluid_recv, SEND = fluid_send, LIKE = pg_catalog.int8);
COMMENT ON TYPE fluid IS 'a unique 64-bit id that sorts by time (Flux RFC 19)';

CREATE FUNCTION fluid_lt (fluid, fluid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_fluid_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION fluid_le (fluid, fluid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_fluid_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION fluid_eq (fluid, fluid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_fluid_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION fluid_ne (fluid, fluid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_fluid_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION fluid_ge (fluid, fluid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_fluid_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION fluid_gt (fluid, fluid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_fluid_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION fluid_cmp (fluid, fluid) RETURNS integer
    AS 'MODULE_PATHNAME', 'pg_fluid_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION fluid_sortsupport (internal) RETURNS void
    AS 'MODULE_PATHNAME', 'pg_fluid_sortsupport' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fluid_hash (fluid) RETURNS integer
    AS 'MODULE_PATHNAME', 'pg_fluid_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION fluid_hash_extended (fluid, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_fluid_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;

CREATE OPERATOR < (LEFTARG = fluid, RIGHTARG = fluid, FUNCTION = fluid_lt, COMMUTATOR = >, NEGATOR = >=,
    RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = fluid, RIGHTARG = fluid, FUNCTION = fluid_le, COMMUTATOR = >=, NEGATOR = >,
    RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = fluid, RIGHTARG = fluid, FUNCTION = fluid_eq, COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = fluid, RIGHTARG = fluid, FUNCTION = fluid_ne, COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR >= (LEFTARG = fluid, RIGHTARG = fluid, FUNCTION = fluid_ge, COMMUTATOR = <=, NEGATOR = <,
    RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = fluid, RIGHTARG = fluid, FUNCTION = fluid_gt, COMMUTATOR = <, NEGATOR = <=,
    RESTRICT = scalargtsel, JOIN = scalargtjoinsel);

CREATE OPERATOR CLASS fluid_ops DEFAULT FOR TYPE fluid USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 fluid_cmp (fluid, fluid), FUNCTION 2 fluid_sortsupport (internal), FUNCTION 4 btequalimage (oid);
CREATE OPERATOR CLASS fluid_ops DEFAULT FOR TYPE fluid USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 fluid_hash (fluid), FUNCTION 2 fluid_hash_extended (fluid, bigint);
CREATE OPERATOR CLASS fluid_minmax_ops DEFAULT FOR TYPE fluid USING brin AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 brin_minmax_opcinfo (internal), FUNCTION 2 brin_minmax_add_value (internal, internal, internal, internal),
    FUNCTION 3 brin_minmax_consistent (internal, internal, internal), FUNCTION 4 brin_minmax_union (internal, internal, internal);

CREATE FUNCTION fluid_smaller (fluid, fluid) RETURNS fluid
    AS 'MODULE_PATHNAME', 'pg_fluid_smaller' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fluid_larger (fluid, fluid) RETURNS fluid
    AS 'MODULE_PATHNAME', 'pg_fluid_larger' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE AGGREGATE min (fluid) (SFUNC = fluid_smaller, STYPE = fluid, COMBINEFUNC = fluid_smaller, SORTOP = <, PARALLEL = SAFE);
CREATE AGGREGATE max (fluid) (SFUNC = fluid_larger, STYPE = fluid, COMBINEFUNC = fluid_larger, SORTOP = >, PARALLEL = SAFE);

-- --- other types, text ------------------------------------------------------------------------

CREATE FUNCTION fluid_to_bigint (fluid) RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_fluid_to_bigint' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fluid_of_bigint (bigint) RETURNS fluid
    AS 'MODULE_PATHNAME', 'pg_fluid_of_bigint' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fluid_to_numeric (fluid) RETURNS numeric
    AS 'MODULE_PATHNAME', 'pg_fluid_to_numeric' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fluid_of_numeric (numeric) RETURNS fluid
    AS 'MODULE_PATHNAME', 'pg_fluid_of_numeric' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE CAST (fluid AS bigint) WITH FUNCTION fluid_to_bigint (fluid) AS ASSIGNMENT;
CREATE CAST (bigint AS fluid) WITH FUNCTION fluid_of_bigint (bigint) AS ASSIGNMENT;
CREATE CAST (fluid AS numeric) WITH FUNCTION fluid_to_numeric (fluid) AS ASSIGNMENT;
CREATE CAST (numeric AS fluid) WITH FUNCTION fluid_of_numeric (numeric) AS ASSIGNMENT;

CREATE FUNCTION fluid_format (id fluid, form text) RETURNS text
    AS 'MODULE_PATHNAME', 'pg_fluid_format' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fluid_format (fluid, text) IS 'an id as text: dec, hex, dothex, f58, f58-utf8, words or emoji';
CREATE FUNCTION fluid_generator (fluid) RETURNS integer
    AS 'MODULE_PATHNAME', 'pg_fluid_generator' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fluid_generator (fluid) IS 'which generator of the instance made it';
CREATE FUNCTION fluid_sequence (fluid) RETURNS integer
    AS 'MODULE_PATHNAME', 'pg_fluid_sequence' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fluid_sequence (fluid) IS 'its number within its generator and millisecond';

-- --- new ones -----------------------------------------------------------------------------------

-- Makes the session learn its instance when a query is planned: parallel workers must use the same one.
CREATE FUNCTION fluid_support (internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_fluid_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- Each process makes its own ids, so parallel workers are allowed, too.
CREATE FUNCTION fluid_next () RETURNS fluid
    AS 'MODULE_PATHNAME', 'pg_fluid_next' LANGUAGE C VOLATILE STRICT PARALLEL SAFE SUPPORT fluid_support;
COMMENT ON FUNCTION fluid_next () IS 'a new id, above all earlier ids of this session';

-- --- time ---------------------------------------------------------------------------------------

CREATE FUNCTION fluid_epoch () RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'pg_fluid_epoch' LANGUAGE C STABLE STRICT PARALLEL SAFE SUPPORT fluid_support;
COMMENT ON FUNCTION fluid_epoch () IS 'when the instance''s time begins: idtree.epoch, or the epoch of the broker';
CREATE FUNCTION fluid_time (fluid) RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'pg_fluid_time' LANGUAGE C STABLE STRICT PARALLEL SAFE SUPPORT fluid_support;
COMMENT ON FUNCTION fluid_time (fluid) IS 'when an id was made, in milliseconds';
CREATE CAST (fluid AS timestamptz) WITH FUNCTION fluid_time (fluid);

CREATE FUNCTION fluid_from (timestamptz) RETURNS fluid
    AS 'MODULE_PATHNAME', 'pg_fluid_from' LANGUAGE C STABLE STRICT PARALLEL SAFE SUPPORT fluid_support;
COMMENT ON FUNCTION fluid_from (timestamptz) IS 'a bound: ids made at that time or later are not below it, others are';

CREATE TYPE fluidrange AS RANGE (SUBTYPE = fluid, SUBTYPE_OPCLASS = fluid_ops, MULTIRANGE_TYPE_NAME = fluidmultirange);
CREATE FUNCTION fluid_range (from_time timestamptz, to_time timestamptz) RETURNS fluidrange
    AS 'MODULE_PATHNAME', 'pg_fluid_range' LANGUAGE C STABLE STRICT PARALLEL SAFE SUPPORT fluid_support;
COMMENT ON FUNCTION fluid_range (timestamptz, timestamptz) IS 'the ids made from one time on and before another';

-- id <@ range is expressed by comparisons, which indexes and the pruning of partitions can use.
CREATE FUNCTION fluid_first (fluidrange) RETURNS fluid
    AS 'MODULE_PATHNAME', 'pg_fluid_first' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fluid_last (fluidrange) RETURNS fluid
    AS 'MODULE_PATHNAME', 'pg_fluid_last' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fluid_within (fluid, fluidrange) RETURNS boolean
    IMMUTABLE PARALLEL SAFE
    RETURN $1 >= fluid_first ($2) AND $1 <= fluid_last ($2);
CREATE FUNCTION fluid_holds (fluidrange, fluid) RETURNS boolean
    IMMUTABLE PARALLEL SAFE
    RETURN $2 >= fluid_first ($1) AND $2 <= fluid_last ($1);
CREATE OPERATOR <@ (LEFTARG = fluid, RIGHTARG = fluidrange, FUNCTION = fluid_within, COMMUTATOR = @>);
CREATE OPERATOR @> (LEFTARG = fluidrange, RIGHTARG = fluid, FUNCTION = fluid_holds, COMMUTATOR = <@);
