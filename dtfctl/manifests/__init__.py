"""A cluster file as objects of Kubernetes, for `dtfctl expand --as`. Pure: nothing is asked, nothing is applied.

    names ....... which names Kubernetes takes              documents .. plain values, and what the file adds to pods
    pods ........ a pod of a task, or of all tasks alike    shared ..... Service, ConfigMap, PodDisruptionBudget ...
    objects ..... --as kubernetes: StatefulSets and Jobs    jobset, tfjob  --as jobset, tfjob
    supervisor .. --as supervisor: dtfctl itself in the cluster, with a Role of the rights in `rights`
    written ..... all of them as YAML                      containerfile  the text from which an image is built

A job whose tasks differ only by their index is one object with one template: `$(TASK_INDEX)` stands in its command
and environment, and Kubernetes fills it from the label that holds the index of a pod.
"""
