-- The nodes of a server that write to the database beside each other, each with its number and its transactions so far.
CREATE TABLE writers (
    node   TEXT   COLLATE "C" PRIMARY KEY,
    number BIGINT NOT NULL,                     -- the process that may write as this node: the last one that started
    batch  BIGINT NOT NULL
);

-- Begins a transaction of a node: no other node writes until it has ended. Gives the last record.
CREATE FUNCTION enter_shared(of_writer BIGINT, of_node TEXT, of_number BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    last BIGINT;
BEGIN
    SELECT applied_lsn FROM store WHERE writer = of_writer FOR UPDATE INTO last;
    IF last IS NULL OR NOT EXISTS (SELECT FROM writers WHERE node = of_node AND number = of_number) THEN
        RAISE EXCEPTION 'another server has taken the database over' USING ERRCODE = 'FM001';
    END IF;
    RETURN last;
END $$;

-- Counts it.
CREATE FUNCTION count_shared(of_node TEXT, of_number BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    counted BIGINT;
BEGIN
    UPDATE writers SET batch = batch + 1 WHERE node = of_node AND number = of_number RETURNING batch INTO counted;
    IF counted IS NULL THEN
        RAISE EXCEPTION 'another server has taken the database over' USING ERRCODE = 'FM001';
    END IF;
    RETURN counted;
END $$;
