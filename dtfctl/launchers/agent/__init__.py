"""The agent: dtfctl's hands on a host that it reaches over a pipe, such as ssh. Nothing of it is installed there.

    daemon  <--pipe: JSON lines-->  agent  <--unix socket-->  keeper  (shims, tasks: ../keeper)

The pipe runs a Python that it finds on the host, and these modules, with those that they import, are the first line of
that Python's input (agent_client.py). The second line is a request, and its `do` says what this agent is for:

- check: tells everything that may hinder tasks here, and what the launcher has to know of the host;
- sync:  compares a list of files with a folder, and takes in what differs;
- environment: makes a Python environment (../environment.py), or brings it up to date;
- talk:  makes sure that the run's keeper is at work, and passes lines between it and the launcher. Besides that it
         sends what the tasks write to their logs and when, measures what they take of the host, and asks their
         commands and files whether they are ready;
- keep:  stays beside the run's keeper, where nothing outlives the call that started it;
- clean: ends all that is left of a run (keepers).

The keeper lives in a private folder, ~/.local/state/dtfctl/hosts/<run>, detached: a lost connection ends the agent,
and nothing else. The folder goes when the run is over. Only Python's standard library, 3.10 or later.
"""
