// Rows in aligned columns. Where a terminal is too narrow for one, it goes on below: nothing is cut off.
import type { Paint, Style } from './colors.ts'

/** A text, or one in a colour. */
export type Cell = string | readonly [style: Style, text: string]

interface Place {
  readonly indent: number
  readonly columns?: number | undefined
  readonly paint: Paint
}

const GAP = '  '
/** What goes on below stands further in than any row of the next level. */
const FURTHER_IN = 4

/** The lines of each row. Columns that nothing is in are left out. */
export function rowsOf(rows: readonly (readonly Cell[])[], place: Place): readonly (readonly string[])[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(0, ...rows.map((row) => textOf(row[i]).length)))
  return rows.map((row) => rowLines(row, widths, place))
}

export function lines(rows: readonly (readonly Cell[])[], place: Place): readonly string[] {
  return rowsOf(rows, place).flat()
}

/** Aligned as long as it fits; from the first cell that does not, as text that is filled. */
function rowLines(row: readonly Cell[], widths: readonly number[], place: Place): readonly string[] {
  const { indent, columns = Number.POSITIVE_INFINITY, paint } = place
  const done: string[] = []
  let line = ' '.repeat(indent)
  let length = indent
  const add = (style: Style | undefined, text: string, width: number, gap: string): void => {
    const shown = style === undefined || text === '' ? text : paint(style, text)
    line += `${gap}${shown}${' '.repeat(width - text.length)}`
    length += gap.length + width
  }
  for (const [i, cell] of row.entries()) {
    const width = widths[i] ?? 0
    if (width === 0) continue
    const [style, text] = typeof cell === 'string' ? [undefined, cell] : cell
    const gap = i === 0 ? '' : GAP
    if (done.length === 0 && (i === 0 || length + gap.length + text.length <= columns)) {
      add(style, text, width, gap)
      continue
    }
    for (const [n, word] of text.split(' ').entries()) {
      const between = n === 0 ? GAP : ' '
      if (done.length > 0 && length + between.length + word.length <= columns) {
        add(style, word, word.length, between)
        continue
      }
      done.push(line.trimEnd())
      line = ' '.repeat(indent + FURTHER_IN)
      length = line.length
      add(style, word, word.length, '')
    }
  }
  return [...done, line.trimEnd()].filter((each) => each.trim() !== '')
}

function textOf(cell: Cell | undefined): string {
  return typeof cell === 'string' ? cell : (cell?.[1] ?? '')
}
