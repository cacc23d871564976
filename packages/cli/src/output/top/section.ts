// A part of the screen of bullpen top: a table of which as many rows are shown as there is room for.
import { plain } from '../format.ts'
import { type Column, fittedTable, type TableFrame } from './fitted-table.ts'

export interface Section {
  /** How many rows there are to show. */
  readonly size: number
  /**
   * Returns the heading and at most `rows` lines below it. If there are more rows, the last line says how many. Without any rows,
   * returns a single line that says so.
   */
  lines(rows: number, frame: TableFrame): readonly string[]
}

interface SectionOptions<Row> {
  readonly rows: readonly Row[]
  readonly columns: readonly Column<Row>[]
  /** The line that is shown if there are no rows. */
  readonly none: string
}

export function section<Row>({ rows: all, columns, none }: SectionOptions<Row>): Section {
  return {
    size: all.length,
    lines(rows, frame) {
      if (all.length === 0) return [plain(none, frame.columns)]
      if (all.length <= rows) return fittedTable(columns, all, frame)
      const shown = all.slice(0, rows - 1)
      const more = `and ${all.length - shown.length} more`
      return [...fittedTable(columns, shown, frame), plain(more, frame.columns)]
    },
  }
}

/** Compares rows by the first of these keys in which they differ. */
export function by<Row>(...keys: readonly ((row: Row) => number | string)[]): (a: Row, b: Row) => number {
  return (a, b) => {
    for (const key of keys) {
      const [left, right] = [key(a), key(b)]
      if (left !== right) return left < right ? -1 : 1
    }
    return 0
  }
}
