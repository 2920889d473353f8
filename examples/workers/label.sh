#!/bin/sh
# Prints labels: a worker that needs no database, because Rota marks the orders that it reports as done. Each line of
# stdin is a batch, and each line of stdout the reply to it. LABELS is a file that stands for the printer: it gets a
# line for each label. It needs jq.
set -eu

while IFS= read -r request; do
	if [ "$(printf '%s\n' "$request" | jq -r .op)" != execute ]; then
		printf '%s\n' "$request" | jq -c '{batch, error: "unknown op \(.op)"}'
		continue
	fi
	printf '%s\n' "$request" | jq -r '.items[].row | select(.weight > 0) | .id' >>"$LABELS"
	printf '%s\n' "$request" | jq -c '{batch, items: [.items[] | {key} +
		if .row.weight > 0 then {result: "done"}
		else {result: "failed", error: "the weight is missing", permanent: true} end]}'
done
