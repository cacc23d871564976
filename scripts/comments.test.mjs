// The formatter does not wrap comments, so a long line of one would go unnoticed.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const MAX_COLUMNS = 140

test('no line of a comment is longer than 140 columns', () => {
  const files = globSync(['{packages,apps,tools}/*/src/**/*.ts', 'docs/build/**/*.ts', 'scripts/**/*.mjs'], {
    cwd: root,
  })
  const long = files.flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, i) =>
        /^\s*(\/\/|\*|\/\*\*)/.test(line) && line.length > MAX_COLUMNS ? [`${file}:${i + 1}`] : [],
      ),
  )
  expect(files.length).toBeGreaterThan(1_000)
  expect(long).toEqual([])
})
