// `npm run docs`: writes the reference pages and updates the programs that other pages quote.
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withQuotes } from './quotes.ts'
import { referencePages } from './reference/reference-pages.ts'

const root = join(import.meta.dirname, '../..')
for (const [name, text] of Object.entries(referencePages())) writeFileSync(join(root, 'docs/reference', name), text)
for (const file of [...globSync('docs/**/*.md', { cwd: root }), 'README.md']) {
  const path = join(root, file)
  const text = readFileSync(path, 'utf8')
  const renewed = withQuotes(text, path)
  if (renewed !== text) writeFileSync(path, renewed)
}
