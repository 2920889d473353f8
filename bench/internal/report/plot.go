package report

import (
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Plot is a picture of some lines over one axis.
type Plot struct {
	File  string // its name, which ends with .svg
	Title string
	X, Y  string // what the axes mean
	LogX  bool   // both axes can be logarithmic; then all values must be above 0
	LogY  bool
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

// marked is up to how many points a line shows each one.
const marked = 20

func (p Plot) write(dir string) error {
	drawing := plot.New()
	drawing.Title.Text, drawing.X.Label.Text, drawing.Y.Label.Text = p.Title, p.X, p.Y
	drawing.Legend.Top = true
	drawing.Add(plotter.NewGrid())
	if p.LogX {
		drawing.X.Scale, drawing.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if p.LogY {
		drawing.Y.Scale, drawing.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	} else {
		drawing.Y.Min = 0
	}
	for i, l := range p.Lines {
		if err := l.draw(drawing, i); err != nil {
			return err
		}
	}
	return drawing.Save(18*vg.Centimeter, 10*vg.Centimeter, filepath.Join(dir, p.File))
}

func (l Line) draw(drawing *plot.Plot, i int) error {
	if len(l.Points) == 0 {
		return nil
	}
	points := make(plotter.XYs, len(l.Points))
	for j, p := range l.Points {
		points[j] = plotter.XY(p)
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, dots.Color, dots.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
	drawing.Add(line)
	drawing.Legend.Add(l.Name, line)
	if len(l.Points) <= marked {
		drawing.Add(dots)
	}
	return nil
}
