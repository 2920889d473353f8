package workercmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
	"github.com/dutyrota/rota/cmd/rota/internal/program"
	"github.com/dutyrota/rota/cmd/rota/internal/redact"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
)

// conformFlags are the flags of rota worker check.
type conformFlags struct {
	row     string
	options program.ConformOptions
	service config.Service
	schema  bool
}

// newConform returns the command rota worker check.
func newConform() *cobra.Command {
	var o conformFlags
	cmd := &cobra.Command{
		Use:   "check [flags] URL | COMMAND [ARGUMENT]...",
		Short: "Check that a program speaks the protocol of workers",
		Long: `Check that a program of another language speaks the protocol of workers: send
requests to a service, or start a command as a worker does, and judge each
reply. Print a line for each check. The exit code is 1 if one has failed.

The program executes the rows that it gets, so let it work on test data. All
rows are alike: those of --row. Rows may fail, but each needs its result. A
program that runs the fence needs --fence, a statement that changes exactly one
row of its database. With --answers it is also asked to select, discard, count
and peek, as the file of a worker says of it.

The log of a command, its stderr, is shown as a worker logs it.`,
		Example: `  rota worker check --row '{"id": 1, "amount": 5}' python3 settle.py
  rota worker check --secret-file secret https://localhost:8400/`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && !o.schema {
				return cli.Usage(errors.New("worker check: missing argument URL or COMMAND (see rota worker check --help)"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.schema {
				_, err := io.WriteString(cmd.OutOrStdout(), program.Schema)
				return err
			}
			return o.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows the command is its own
	flags.StringVar(&o.row, "row", `{"id": 1}`, "the columns of each row, as JSON")
	flags.StringVar(&o.options.Fence, "fence", "", "a statement with WHERE that changes one row, if the program runs it")
	flags.StringSliceVar(&o.options.Answers, "answers", nil, "what the program answers: select,discard,backlog,peek")
	flags.StringSliceVar(&o.options.Env, "env", nil, "the variables that a command gets, as env of its dealer: SHOP,TOKEN")
	flags.DurationVar(&o.options.Timeout, "timeout", 10*time.Second, "the most time of each check")
	flags.StringVar(&o.service.SecretFile, "secret-file", "", "the file with the secret of a service")
	flags.StringVar(&o.service.SecretVariable, "secret-variable", "", "the variable with the secret of a service")
	flags.StringVar(&o.service.CAFile, "ca-file", "", "the certificates that sign that of a service")
	flags.BoolVar(&o.schema, "schema", false, "print the JSON schema of the protocol instead")
	return cmd
}

func (o *conformFlags) run(cmd *cobra.Command, args []string) error {
	var row map[string]any
	if err := json.Unmarshal([]byte(o.row), &row); err != nil {
		return cli.Usage(fmt.Errorf("--row must be a JSON object: %w", err))
	}
	if row == nil { // null
		return cli.Usage(errors.New("--row must be a JSON object"))
	}
	if o.options.Timeout <= 0 {
		return cli.Usage(fmt.Errorf("--timeout (%s) must be positive", o.options.Timeout))
	}
	o.options.Row = json.RawMessage(o.row)
	if answers := o.options.Answers; len(answers) > 0 {
		if err := config.CheckAnswers(answers); err != nil {
			return cli.Usage(fmt.Errorf("--answers (%s): %w", strings.Join(answers, ", "), err))
		}
	}
	checks, failed := 0, 0
	report := func(f program.Finding) {
		checks++
		verdict, reason := "ok  ", ""
		if f.Err != nil {
			failed++
			verdict, reason = "FAIL", ": "+cli.OneLine(f.Err.Error())
		}
		line := fmt.Sprintf("%s  %s (%s)%s", verdict, f.Check, f.Took.Round(time.Millisecond), reason)
		fmt.Fprintln(cmd.OutOrStdout(), escape.Text(line)) //nolint:errcheck // the exit code says it, too
	}
	if err := o.conform(cmd, args, report); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s failed", failed, human.Count(checks, "check", "checks"))
	}
	return nil
}

// conform checks a service or a command.
func (o *conformFlags) conform(cmd *cobra.Command, args []string, report func(program.Finding)) error {
	scheme, _, isURL := strings.Cut(strings.ToLower(args[0]), "://")
	isURL = isURL && (scheme == "http" || scheme == "https")
	for _, name := range []string{"secret-file", "secret-variable", "ca-file"} {
		if !isURL && cmd.Flags().Changed(name) {
			return cli.Usage(fmt.Errorf("--%s is for a service, and %s is a command", name, args[0]))
		}
	}
	if isURL && cmd.Flags().Changed("env") {
		return cli.Usage(fmt.Errorf("--env is for a command, and %s is a URL", args[0]))
	}
	if !isURL {
		log := daemon.NewLogger(cmd.ErrOrStderr(), redact.URLs)
		return program.ConformCommand(cmd.Context(), args, o.options, log, report)
	}
	if len(args) > 1 {
		return cli.Usage(fmt.Errorf("worker check: unexpected argument %q behind the URL", args[1]))
	}
	secret, err := o.service.Secret()
	if err != nil {
		return cli.Usage(errors.New(strings.Replace(err.Error(), ".secret_", "--secret-", 1)))
	}
	h, err := program.NewHTTP(program.HTTPOptions{URL: args[0], Secret: []byte(secret), CAFile: o.service.CAFile})
	if err != nil {
		return cli.Usage(err)
	}
	defer h.Close()
	program.ConformHTTP(cmd.Context(), h, o.options, report)
	return nil
}
