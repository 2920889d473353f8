package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
)

// newManCommand makes a command for packagers. It does not use the package cobra/doc, because that package takes the
// help for Markdown and writes a page for each subcommand. Such a page repeats the flags that all subcommands share.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a directory, which it creates",
		Example: "  rota man /usr/local/share/man/man1",
		Hidden:  true, // "rota --help" is for users
		Args:    cli.Arguments("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // all may read it
				return err
			}
			b := readBuild()
			for _, page := range append(pages(cmd.Root()), cmd.Root()) {
				file := filepath.Join(args[0], pageName(page)+".1")
				if err := os.WriteFile(file, []byte(manPage(page, b)), 0o644); err != nil { //nolint:gosec // all may read it
					return err
				}
			}
			return nil
		},
	}
}

// pages returns the commands that get a page of their own: all below rota except those that cobra adds. The page of a
// command has a section for each of its subcommands.
func pages(root *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(root.Commands()), func(cmd *cobra.Command) bool {
		return cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion"
	})
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the page of a command as roff. It has the date of the commit, so that each build makes the same page.
func manPage(cmd *cobra.Command, b build) string {
	p := &page{}
	date := ""
	if !b.time.IsZero() {
		date = b.time.UTC().Format(time.DateOnly)
	}
	p.macro("TH", strings.ToUpper(pageName(cmd)), "1", date, "rota "+b.version, "Rota")
	p.macro("SH", "NAME")
	p.text(pageName(cmd) + " - " + cmd.Short)
	if cmd.HasParent() {
		p.command(cmd)
	} else {
		p.program(cmd)
	}
	return p.String()
}

// page is roff.
type page struct{ strings.Builder }

// program writes the page of rota, which lists the other pages.
func (p *page) program(root *cobra.Command) {
	p.macro("SH", "SYNOPSIS")
	p.macro("B", "rota COMMAND [ARGUMENT...] [flags]")
	p.macro("SH", "DESCRIPTION")
	p.help(root.Long)
	p.macro("SH", "COMMANDS")
	for _, cmd := range pages(root) {
		p.macro("TP")
		p.macro("BR", pageName(cmd), "(1)")
		p.text(cmd.Short)
	}
	p.macro("SH", "EXAMPLES")
	p.block(root.Example)
	p.macro("SH", "SEE ALSO")
	p.text("https://github.com/dutyrota/rota")
}

// command writes the page of a command and of its subcommands. The flags that all of them share are listed once.
func (p *page) command(cmd *cobra.Command) {
	commands := withSubcommands(cmd)
	p.macro("SH", "SYNOPSIS")
	for _, c := range commands {
		p.macro("B", c.UseLine())
		p.macro("br")
	}
	p.macro("SH", "DESCRIPTION")
	p.help(cmp.Or(cmd.Long, cmd.Short+"."))
	common := commonFlags(commands)
	if len(commands) > 1 || commands[0] != cmd {
		p.macro("SH", "COMMANDS")
		for _, c := range commands {
			p.macro("SS", strings.TrimSuffix(c.UseLine(), " [flags]"))
			if c != cmd {
				p.help(cmp.Or(c.Long, c.Short+"."))
			}
			p.flags(slices.DeleteFunc(flagsOf(c), common.has))
			p.block(c.Example)
		}
	} else {
		p.macro("SH", "EXAMPLES")
		p.block(cmd.Example)
	}
	if len(common) > 0 {
		p.macro("SH", "OPTIONS")
		p.flags(common)
	}
	p.macro("SH", "SEE ALSO")
	p.macro("BR", "rota", "(1)")
}

// withSubcommands returns the commands of a page that do something, in the order of its sections.
func withSubcommands(cmd *cobra.Command) (list []*cobra.Command) {
	if cmd.Example != "" && !cmd.Hidden { // a group has no example
		list = append(list, cmd)
	}
	for _, c := range cmd.Commands() {
		list = append(list, withSubcommands(c)...)
	}
	return list
}

type flags []*pflag.Flag

// has reports whether there is a flag of the same name and meaning.
func (list flags) has(f *pflag.Flag) bool {
	return slices.ContainsFunc(list, func(g *pflag.Flag) bool { return f.Name == g.Name && f.Usage == g.Usage })
}

// flagsOf returns the flags that the help shows, except --help, by name.
func flagsOf(cmd *cobra.Command) (list flags) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			list = append(list, f)
		}
	})
	return list
}

func commonFlags(commands []*cobra.Command) flags {
	common := flagsOf(commands[0])
	for _, c := range commands[1:] {
		own := flagsOf(c)
		common = slices.DeleteFunc(common, func(f *pflag.Flag) bool { return !own.has(f) })
	}
	return common
}

// help writes a text of the help. A paragraph with an indented line keeps its lines.
func (p *page) help(text string) {
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			p.block(paragraph)
			continue
		}
		p.macro("PP")
		p.text(paragraph)
	}
}

// block writes lines that are not filled.
func (p *page) block(text string) {
	p.macro("PP")
	p.macro("EX")
	p.text(text)
	p.macro("EE")
}

func (p *page) flags(list flags) {
	for _, f := range list {
		value, usage := pflag.UnquoteUsage(f)
		head := "--" + f.Name
		if f.Shorthand != "" {
			head = "-" + f.Shorthand + ", " + head
		}
		if f.DefValue != "" && !slices.Contains([]string{"false", "0", "0s", "[]"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		p.macro("TP")
		p.macro("B", strings.TrimSpace(head+" "+value))
		p.text(usage)
	}
}

// inRoff replaces the characters that mean something else in roff, or are printed as others.
var inRoff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// text writes lines of text. A line that begins with a full stop would be a macro.
func (p *page) text(text string) {
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		if strings.HasPrefix(line, ".") {
			p.WriteString(`\&`)
		}
		p.WriteString(inRoff.Replace(line) + "\n")
	}
}

// macro writes a line that begins with a macro.
func (p *page) macro(name string, arguments ...string) {
	p.WriteString("." + name)
	for _, a := range arguments {
		p.WriteString(` "` + strings.ReplaceAll(inRoff.Replace(a), `"`, `\(dq`) + `"`)
	}
	p.WriteString("\n")
}
