// Tests tables of a fixed width: alignment, columns that are left out, and cut text.
import { expect, test } from 'vitest'
import { type Column, fittedTable } from './fitted-table.ts'

interface Row {
  readonly name: string
  readonly count: number
  readonly state: string
}

const columns: readonly Column<Row>[] = [
  { heading: 'name', cell: ({ name }) => name },
  { heading: 'count', align: 'right', leftOut: 2, cell: ({ count }) => ['red', String(count)] },
  { heading: 'host', leftOut: 1, cell: () => 'localhost' },
  { heading: 'state', cell: ({ state }) => state },
]
const rows = [
  { name: 'a', count: 7, state: 'open' },
  { name: 'images', count: 1_234_567, state: 'paused, at most 500 tasks' },
]
const paint = (style: string, text: string) => `<${style} ${text}>`

test('text is aligned to the left and numbers to the right, and colour codes take no width', () => {
  expect(fittedTable(columns, rows, { columns: 100, paint })).toEqual([
    'name      count  host       state',
    'a             <red 7>  localhost  open',
    'images  <red 1234567>  localhost  paused, at most 500 tasks',
  ])
})

test.each([
  [40, ['name      count  host       state', 'images  <red 1234567>  localhost  paused, at …']],
  [37, ['name      count  state', 'images  <red 1234567>  paused, at most 500…']],
  [28, ['name    state', 'images  paused, at most 500…']],
  [10, ['name    s…', 'images  p…']],
  [5, ['name', 'imag…']],
])(
  'with %i characters, the least important columns are left out first, and the last one is cut off',
  (width, lines) => {
    const [heading, , row] = fittedTable(columns, rows, { columns: width, paint })
    expect([heading, row]).toEqual(lines)
    const plain = fittedTable(columns, rows, { columns: width, paint: (_, text) => text })
    for (const line of plain) expect(line.length).toBeLessThanOrEqual(width)
  },
)

test('a name of wide and combining characters takes the columns that the terminal gives it', () => {
  const named = ['漢字', 'e\u0301'].map((name) => ({ name, count: 7, state: '漢字漢字漢字漢字' }))
  const lines = fittedTable(columns, named, { columns: 18, paint: (_, text) => text })
  expect(lines).toEqual(['name  state', '漢字  漢字漢字漢…', 'e\u0301     漢字漢字漢…'])
})
