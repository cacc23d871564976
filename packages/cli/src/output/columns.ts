// Lays out rows in aligned columns. Text that does not fit on a narrow terminal is wrapped and never cut off.
import stringWidth from 'string-width'
import type { Paint, Style } from './colors.ts'

/** How text is laid out. */
export interface Layout {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly paint: Paint
  /** The width of the terminal, or undefined if it is unlimited. */
  readonly columns?: number | undefined
}

/** A string, or a string with a colour. */
export type Cell = string | readonly [style: Style, text: string]

type Frame = Omit<Layout, 'now'> & { readonly indent: number }

const GAP = '  '
/** Wrapped text is indented further than the rows of the next level. */
const WRAP_INDENT = 4

export function tableLines(rows: readonly (readonly Cell[])[], frame: Frame): readonly string[] {
  return tableRows(rows, frame).flat()
}

/** Returns the lines of each row. Columns in which all cells are empty are omitted. */
export function tableRows(rows: readonly (readonly Cell[])[], frame: Frame): readonly (readonly string[])[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(0, ...rows.map((row) => stringWidth(textOf(row[i])))))
  return rows.map((row) => rowLines(row, widths, frame))
}

/** Aligns the cells that fit on the line. From the first cell that does not fit, the text is wrapped word by word. */
function rowLines(row: readonly Cell[], widths: readonly number[], frame: Frame): readonly string[] {
  const { indent, columns = Number.POSITIVE_INFINITY, paint } = frame
  const done: string[] = []
  let line = ' '.repeat(indent)
  // How many columns of the terminal the line takes.
  let length = indent
  const append = (style: Style | undefined, text: string, width: number, gap: string): void => {
    const painted = style === undefined || text === '' ? text : paint(style, text)
    line += `${gap}${painted}${' '.repeat(width - stringWidth(text))}`
    length += gap.length + width
  }
  for (const [i, cell] of row.entries()) {
    const width = widths[i] ?? 0
    if (width === 0) continue
    const [style, text] = typeof cell === 'string' ? [undefined, cell] : cell
    const gap = i === 0 ? '' : GAP
    const isWrapped = done.length > 0
    if (!isWrapped && (i === 0 || length + gap.length + stringWidth(text) <= columns)) {
      append(style, text, width, gap)
      continue
    }
    for (const [n, word] of text.split(' ').entries()) {
      const space = n === 0 ? GAP : ' '
      if (done.length > 0 && length + space.length + stringWidth(word) <= columns) {
        append(style, word, stringWidth(word), space)
        continue
      }
      done.push(line.trimEnd())
      line = ' '.repeat(indent + WRAP_INDENT)
      length = line.length
      append(style, word, stringWidth(word), '')
    }
  }
  return [...done, line.trimEnd()].filter((each) => each.trim() !== '')
}

function textOf(cell: Cell | undefined): string {
  return typeof cell === 'string' ? cell : (cell?.[1] ?? '')
}
