// Places the panels of a dashboard on Grafana's grid, which has 24 columns.
import type { Panel, Section } from '@bullpen/telemetry/dashboards'

export interface Place {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}

export interface PlacedSection {
  readonly title: string
  readonly place: Place
  readonly panels: readonly { readonly panel: Panel; readonly place: Place }[]
}

const COLUMNS = 24
const PANEL_HEIGHT = 8

/** Lays out the sections from top to bottom, and the panels of each section from left to right. */
export function layout(sections: readonly Section[]): readonly PlacedSection[] {
  let y = 0
  return sections.map(({ title, panels }) => {
    const place = { x: 0, y: y++, w: COLUMNS, h: 1 }
    let x = 0
    const placed = panels.map((panel) => {
      const w = panel.width ?? COLUMNS / 3
      if (x + w > COLUMNS) {
        x = 0
        y += PANEL_HEIGHT
      }
      x += w
      return { panel, place: { x: x - w, y, w, h: PANEL_HEIGHT } }
    })
    y += PANEL_HEIGHT
    return { title, place, panels: placed }
  })
}
