-- ANALYZE would keep samples of these columns in the server's own tables, which forgetting doesn't reach.
ALTER TABLE runs ALTER brief SET STATISTICS 0, ALTER error SET STATISTICS 0;
ALTER TABLE steps ALTER outcome SET STATISTICS 0;
ALTER TABLE conversations ALTER title SET STATISTICS 0, ALTER folded SET STATISTICS 0,
    ALTER question SET STATISTICS 0;
ALTER TABLE search ALTER title SET STATISTICS 0, ALTER question SET STATISTICS 0,
    ALTER answer SET STATISTICS 0;
ALTER TABLE documents ALTER content SET STATISTICS 0;
ALTER TABLE documents_set_aside ALTER content SET STATISTICS 0;
ALTER INDEX search_words ALTER COLUMN 1 SET STATISTICS 0;
