// Lays out a table on a screen of a fixed width: one line for each row. If the table is too wide, the least important columns are left
// out, and the last one is cut off.
import stringWidth from 'string-width'
import type { Paint } from '../colors.ts'
import type { Cell } from '../columns.ts'
import { plain } from '../format.ts'

export interface Column<Row> {
  readonly heading: string
  readonly cell: (row: Row) => Cell
  /** Where the text of the column is. Numbers are right-aligned. Defaults to 'left'. */
  readonly align?: 'left' | 'right'
  /** The order in which columns are left out if the table is too wide, beginning with 1. Without it, the column is always shown. */
  readonly leftOut?: number
}

export interface TableFrame {
  /** The width of a line, in columns of the terminal. */
  readonly columns: number
  readonly paint: Paint
}

const GAP = '  '
/** How wide the last column is at least, before a column is left out. */
const MIN_LAST_WIDTH = 12

/** Returns the heading and a line for each row, none of which is longer than the frame. */
export function fittedTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  frame: TableFrame,
): readonly string[] {
  const measured = columns.map((column) => withWidth(column, rows))
  const shown = fitting(measured, frame.columns)
  const lineOf = (cellOf: (column: Column<Row>) => Cell): string =>
    line(
      shown.map(({ column, width }) => ({ ...styled(cellOf(column)), width, align: column.align })),
      frame,
    )
  return [lineOf(({ heading }) => heading), ...rows.map((row) => lineOf(({ cell }) => cell(row)))]
}

interface Measured<Row> {
  readonly column: Column<Row>
  readonly width: number
}

function withWidth<Row>(column: Column<Row>, rows: readonly Row[]): Measured<Row> {
  const widths = rows.map((row) => stringWidth(styled(column.cell(row)).text))
  return { column, width: Math.max(stringWidth(column.heading), ...widths) }
}

/** Leaves out columns until the others fit, or none is left that can be left out. */
function fitting<Row>(table: readonly Measured<Row>[], available: number): readonly Measured<Row>[] {
  const needed = table.reduce((sum, { width }, i) => {
    const isLast = i === table.length - 1
    return sum + (i === 0 ? 0 : GAP.length) + (isLast ? Math.min(width, MIN_LAST_WIDTH) : width)
  }, 0)
  if (needed <= available) return table
  const [next] = table
    .filter(({ column }) => column.leftOut !== undefined)
    .toSorted((a, b) => (a.column.leftOut ?? 0) - (b.column.leftOut ?? 0))
  return next === undefined
    ? table
    : fitting(
        table.filter((each) => each !== next),
        available,
      )
}

interface Styled {
  readonly style: Exclude<Cell, string>[0] | undefined
  readonly text: string
}

function styled(cell: Cell): Styled {
  const [style, text] = typeof cell === 'string' ? [undefined, cell] : cell
  return { style, text }
}

interface Placed extends Styled {
  readonly width: number
  readonly align: 'left' | 'right' | undefined
}

function line(cells: readonly Placed[], { columns, paint }: TableFrame): string {
  let written = ''
  // How many columns of the terminal the line takes.
  let taken = 0
  for (const [i, { style, text, width, align }] of cells.entries()) {
    const gap = i === 0 ? '' : GAP
    const room = columns - taken - gap.length
    if (room <= 0) break
    const shown = plain(text, room)
    const shownWidth = stringWidth(shown)
    const padding = ' '.repeat(Math.max(0, Math.min(width, room) - shownWidth))
    const painted = style === undefined || shown === '' ? shown : paint(style, shown)
    written += gap + (align === 'right' ? padding + painted : painted + padding)
    taken += gap.length + shownWidth + padding.length
  }
  return written.trimEnd()
}
