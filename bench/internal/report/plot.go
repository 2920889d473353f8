package report

import (
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Plot is a picture of some lines over time.
type Plot struct {
	File  string // its name, which ends with .svg
	Title string
	X, Y  string // the meaning of the axes
	Lines []Line
}

// Line is one line of a Plot.
type Line struct {
	Name   string
	Points []Point
}

// Point is a point of a Line.
type Point struct{ X, Y float64 }

// Add appends a point.
func (l *Line) Add(x, y float64) { l.Points = append(l.Points, Point{x, y}) }

func (p Plot) write(dir string) error {
	drawing := plot.New()
	drawing.Title.Text, drawing.X.Label.Text, drawing.Y.Label.Text = p.Title, p.X, p.Y
	drawing.Legend.Top, drawing.Y.Min = true, 0
	drawing.Add(plotter.NewGrid())
	for i, l := range p.Lines {
		if len(l.Points) == 0 {
			continue
		}
		points := make(plotter.XYs, len(l.Points))
		for j, p := range l.Points {
			points[j] = plotter.XY(p)
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.Color = plotutil.Color(i)
		drawing.Add(line)
		drawing.Legend.Add(l.Name, line)
	}
	return drawing.Save(18*vg.Centimeter, 10*vg.Centimeter, filepath.Join(dir, p.File))
}
