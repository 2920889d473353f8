package rostercmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/ops"
)

func newDataListCommand() *cobra.Command {
	cmd := cli.Shows(&cobra.Command{
		Use:   "list",
		Short: "List the data databases and their states",
		Long: `List the data databases that workers have used, and those of rota.yaml.

The state of a data database:
  OK           the workers use it
  NEW          no worker has used it yet
  UNREACHABLE  it cannot be used, and its queues are not worked: the workers say
               so by their alert, or this command cannot ("from here")
  FENCE_WAIT   a queue waits there for transactions of its earlier owner

QUEUES is how many queues are fenced there, and LAST RAISE when an epoch last
rose: when a worker began with a queue. The command asks the databases that
rota.yaml or --data names, and waits two seconds for them.`,
		Example: `  rota data list --watch
  rota data list -o json | jq '.[] | select(.state != "OK")'`,
	}, new(cli.Output), func(ctx context.Context, c *ops.Client, _ []string) (cli.Result, error) {
		list, err := c.DataDatabases().List(ctx)
		return cli.TableResult(list, dataRow), err
	})
	cli.AddDataFlags(cmd)
	return cmd
}

func dataRow(d ops.DataRecord) cli.Row {
	return cli.Row{
		cli.Text("NAME", d.Name),
		cli.Text("STATE", d.State).Colored(d.State),
		cli.Maybe("QUEUES", d.Queues).Right(),
		cli.Maybe("LAST RAISE", d.RaisedAt),
		cli.Maybe("SINCE", d.Since).Drop(2),
		cli.Long("ADDRESS", d.Address).Drop(1),
		cli.Long("REASON", cli.OneLine(d.Reason)),
	}
}
