"""`dtfctl ui`: a page in the browser for every cluster of the state folder, a rendering of Snapshots.

    access ...... who may ask: Host, Origin and token of each request; the headers of each answer
    documents ... Snapshot -> JSON for the page, and what is planned next. Pure
    watching .... one loop for each cluster that a page shows; it ends with the last page
    pacing ...... what dtf's tasks report while a page is open, as a TaskPace for each
    reading ..... curves, images, logs, lives, parameters, of files and history
    actions ..... restart, stop, start, scale, down: the plan in words, then the request of the command line
    server ...... the addresses, and serving them at 127.0.0.1 or a Unix socket
    page/ ....... HTML, CSS and JavaScript modules as they are served; vendor/ has uPlot

The page has no state of its own and no rights that the command line lacks. Needs `pip install 'dtf[ui]'`; only
`server` and `access` know Starlette and uvicorn.
"""
