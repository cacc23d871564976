// Tests rows in columns: aligned, coloured without being shifted, and whole on a narrow terminal.
import { expect, test } from 'vitest'
import { lines } from './columns.ts'

const paint = (style: string, text: string) => `<${style} ${text}>`
const rows = [
  ['worker-7d9f:12:a3f84945', 'IDLE', '', ''],
  ['b', ['yellow', 'TERMINATING'], '', 'a long task, with a reason'],
] as const

test('columns are aligned, colours take no room, and what is empty is left out', () => {
  expect(lines(rows, { indent: 2, paint })).toEqual([
    '  worker-7d9f:12:a3f84945  IDLE',
    '  b                        <yellow TERMINATING>  a long task, with a reason',
  ])
})

test('a row that is too wide goes on below, word by word, and nothing is lost', () => {
  expect(lines(rows, { indent: 2, columns: 60, paint })).toEqual([
    '  worker-7d9f:12:a3f84945  IDLE',
    '  b                        <yellow TERMINATING>',
    '      a long task, with a reason',
  ])
  const narrow = lines(rows, { indent: 0, columns: 18, paint: (_, text) => text })
  expect(narrow).toEqual([
    'worker-7d9f:12:a3f84945',
    '    IDLE',
    'b',
    '    TERMINATING  a',
    '    long task,',
    '    with a reason',
  ])
})

test('no rows are no lines', () => {
  expect(lines([], { indent: 0, paint })).toEqual([])
})
