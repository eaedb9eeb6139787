"""Strings, files, summaries and messages pass no gradients on; only Print passes them unchanged."""

from __future__ import annotations

from dtf.build.gradients import gradient, not_differentiable

not_differentiable(
    *(
        "StringJoin StringSplit StringSplitV2 ReduceJoin AsString StringToNumber Substr StringLength StringStrip "
        "StringLower "
        "StringUpper RegexReplace RegexFullMatch StaticRegexFullMatch StaticRegexReplace EncodeBase64 DecodeBase64 "
        "DecodeRaw "
        "DecodeCSV ShardedFilename ShardedFilespec MergeV2Checkpoints SaveV2 RestoreV2 ReadFile WriteFile "
        "GenerateVocabRemapping LoadAndRemapMatrix "
        "Save SaveIncrement SaveSlices Restore RestoreSlice MatchingFiles ParseTensor "
        "SerializeTensor PyFunc PyFuncStateless ScalarSummary HistogramSummary MergeSummary TensorSummary "
        "TensorSummaryV2 "
        "StringToHashBucket StringToHashBucketFast StringToHashBucketStrong StringFormat StringNGrams "
        "UnsortedSegmentJoin DecodeCompressed DecodePaddedRaw UnicodeTranscode UnicodeEncode UnicodeDecode "
        "UnicodeDecodeWithOffsets Fingerprint "
        "ParseExample ParseExampleV2 ParseSingleExample ParseSequenceExample ParseSequenceExampleV2 "
        "ParseSingleSequenceExample DecodeJSONExample WholeFileReader WholeFileReaderV2 TextLineReader "
        "TextLineReaderV2 FixedLengthRecordReader FixedLengthRecordReaderV2 TFRecordReader TFRecordReaderV2 "
        "IdentityReader IdentityReaderV2 ReaderRead ReaderReadV2 ReaderReadUpTo ReaderReadUpToV2 "
        "ReaderNumRecordsProduced ReaderNumRecordsProducedV2 ReaderNumWorkUnitsCompleted "
        "ReaderNumWorkUnitsCompletedV2 ReaderSerializeState ReaderSerializeStateV2 ReaderRestoreState "
        "ReaderRestoreStateV2 ReaderReset ReaderResetV2 "
        "ImageSummary AudioSummary AudioSummaryV2 PrintV2 Timestamp"
    ).split()
)


@gradient("Print")
def _(op, grad):
    return [grad] + [None] * (len(op.inputs) - 1)
