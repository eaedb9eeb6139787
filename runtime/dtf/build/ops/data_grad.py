"""Datasets and iterators have no gradients."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable

not_differentiable(
    *(
        "BatchDataset BatchDatasetV2 CacheDataset ConcatenateDataset FilterDataset FinalizeDataset "
        "FixedLengthRecordDataset FixedLengthRecordDatasetV2 FlatMapDataset GeneratorDataset IgnoreErrorsDataset "
        "InterleaveDataset LegacyParallelInterleaveDatasetV2 MapAndBatchDataset MapDataset ModelDataset OptimizeDataset "
        "OptionsDataset PaddedBatchDataset PaddedBatchDatasetV2 ParallelInterleaveDataset ParallelInterleaveDatasetV2 "
        "ParallelInterleaveDatasetV3 ParallelInterleaveDatasetV4 ParallelMapDataset ParallelMapDatasetV2 PrefetchDataset "
        "RangeDataset ReduceDataset RepeatDataset RewriteDataset ScanDataset ShardDataset ShuffleAndRepeatDataset "
        "ShuffleDataset SkipDataset TFRecordDataset TakeDataset TakeWhileDataset TensorDataset TensorSliceDataset "
        "TextLineDataset UnbatchDataset WindowDataset ZipDataset "
        "DeserializeIterator Iterator IteratorFromStringHandle IteratorFromStringHandleV2 IteratorGetNext "
        "IteratorGetNextAsOptional IteratorGetNextSync IteratorToStringHandle IteratorV2 MakeIterator OneShotIterator "
        "SerializeIterator"
    ).split()
)
