"""Queues, accumulators and session tensors pass no gradients on."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable

not_differentiable(
    *(
        "FIFOQueue FIFOQueueV2 RandomShuffleQueue RandomShuffleQueueV2 PaddingFIFOQueue PaddingFIFOQueueV2 "
        "PriorityQueue "
        "PriorityQueueV2 QueueEnqueue QueueEnqueueV2 QueueEnqueueMany QueueEnqueueManyV2 QueueDequeue QueueDequeueV2 "
        "QueueDequeueMany QueueDequeueManyV2 QueueDequeueUpTo QueueDequeueUpToV2 QueueClose QueueCloseV2 QueueSize "
        "QueueSizeV2 "
        "QueueIsClosed QueueIsClosedV2 ConditionalAccumulator SparseConditionalAccumulator AccumulatorApplyGradient "
        "AccumulatorTakeGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep SparseAccumulatorApplyGradient "
        "SparseAccumulatorTakeGradient ResourceConditionalAccumulator ResourceAccumulatorApplyGradient "
        "ResourceAccumulatorTakeGradient ResourceAccumulatorNumAccumulated ResourceAccumulatorSetGlobalStep "
        "GetSessionHandle "
        "GetSessionTensor DeleteSessionTensor"
    ).split()
)
