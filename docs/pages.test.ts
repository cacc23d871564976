// The reference pages and the quoted programs are those of the code, and every link leads somewhere.
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { currentPages, pages, read, root } from './build/pages.ts'
import { withQuotes } from './build/quotes.ts'
import { referencePages } from './build/reference/reference-pages.ts'

describe('a reference page', () => {
  it.each(Object.entries(referencePages()))('%s is what `npm run docs` writes', (name, text) => {
    expect(read(join('docs/reference', name))).toBe(text)
  })
})

describe('a page', () => {
  it.each(currentPages)('%s names files that exist', (file) => {
    const named = read(file).match(/(?<=`)(?:packages|apps|tools|scripts|k8s|docs)\/[\w./-]+(?=`)/g) ?? []
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it.each(pages)('%s quotes its programs as they are', (file) => {
    expect(withQuotes(read(file), join(root, file))).toBe(read(file))
  })

  it.each(pages)('%s has links that lead somewhere', (file) => {
    const dead = [...withoutBlocks(read(file)).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)]
      .map(([, link = '']) => link)
      .filter((link) => !leadsSomewhere(file, link))
    expect(dead).toEqual([])
  })
})

it('the list of decisions has the title of each page', () => {
  const rows = [...read('docs/adr/README.md').matchAll(/^\| \[(\d+)\]\((\S+)\) +\| (.+?)(?: \(amended\))? +\|$/gm)]
  expect(rows.map(([, number, , title]) => `# ${number}. ${title}`)).toEqual(
    rows.map(([, , file]) => read(`docs/adr/${file}`).split('\n', 1)[0]),
  )
  const amended = rows.filter(([, , file]) => /^## Amendments? /m.test(read(`docs/adr/${file}`)))
  expect(rows.filter(([row]) => row.includes(' (amended) '))).toEqual(amended)
  expect(rows.map(([, , file]) => file)).toEqual(readdirSync(join(root, 'docs/adr')).filter((name) => /^\d/.test(name)))
})

function leadsSomewhere(file: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? join(root, file) : resolve(root, dirname(file), path)
  if (!existsSync(target)) return false
  return anchor === undefined || anchorsOf(read(relative(root, target))).includes(anchor)
}

/** As GitHub makes them: lower case, dashes for spaces, no punctuation. */
function anchorsOf(text: string): string[] {
  return [...withoutBlocks(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-'),
  )
}

const withoutBlocks = (text: string): string => text.replaceAll(/```[\s\S]*?```/g, '')
