// Tests tables: alignment, colours, and wrapping on a narrow terminal.
import { expect, test } from 'vitest'
import { tableLines } from './columns.ts'

const paint = (style: string, text: string) => `<${style} ${text}>`
const rows = [
  ['worker-7d9f:12:a3f84945', 'IDLE', '', ''],
  ['b', ['yellow', 'TERMINATING'], '', 'a long task, with a reason'],
] as const

test('columns are aligned, colour codes take no width, and empty columns are left out', () => {
  expect(tableLines(rows, { indent: 2, paint })).toEqual([
    '  worker-7d9f:12:a3f84945  IDLE',
    '  b                        <yellow TERMINATING>  a long task, with a reason',
  ])
})

test('a row that is too wide is wrapped word by word, and nothing is lost', () => {
  expect(tableLines(rows, { indent: 2, columns: 60, paint })).toEqual([
    '  worker-7d9f:12:a3f84945  IDLE',
    '  b                        <yellow TERMINATING>',
    '      a long task, with a reason',
  ])
  const narrow = tableLines(rows, { indent: 0, columns: 18, paint: (_, text) => text })
  expect(narrow).toEqual([
    'worker-7d9f:12:a3f84945',
    '    IDLE',
    'b',
    '    TERMINATING  a',
    '    long task,',
    '    with a reason',
  ])
})

test('columns are aligned by what the terminal shows of wide and combining characters, not by their code units', () => {
  // Two columns each: a wide character, a flag, a family of three, and two letters with combining accents.
  const names = ['漢', '🇳🇿', '👨‍👩‍👧', 'e\u0301o\u0308', 'ab']
  const wide = names.map((name) => [name, 'x'])
  expect(tableLines(wide, { indent: 0, paint })).toEqual(names.map((name) => `${name}  x`))
  expect(tableLines([['漢字', '漢字']], { indent: 0, columns: 9, paint })).toEqual(['漢字', '    漢字'])
})

test('a table without rows has no lines', () => {
  expect(tableLines([], { indent: 0, paint })).toEqual([])
})
