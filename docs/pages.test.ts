// The reference pages and the quoted programs are those of the code, and every link leads somewhere.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { METRICS } from '@bullpen/telemetry'
import { describe, expect, it } from 'vitest'
import { withQuotes } from './build/quotes.ts'
import { referencePages } from './build/reference-pages.ts'

const root = join(import.meta.dirname, '..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const pages = ['*.md', 'docs/**/*.md', 'k8s/*.md', 'packages/*/README.md'].flatMap((pattern) =>
  globSync(pattern, { cwd: root, exclude: (file) => file.includes('node_modules') }),
)

describe('a reference page', () => {
  it.each(Object.entries(referencePages()))('%s is what `npm run docs` writes', (name, text) => {
    expect(read(join('docs/reference', name))).toBe(text)
  })
})

describe('a page', () => {
  const settings = new Set(read('docs/reference/settings.md').match(/\bBULLPEN_[A-Z_]+\b/g))

  it.each(pages.filter((file) => file !== 'CHANGELOG.md'))('%s names metrics and settings that exist', (file) => {
    const metrics = read(file).match(/\bbullpen_[a-z]+_[a-z_]+\b/g) ?? []
    expect(metrics.filter((name) => !(name in METRICS))).toEqual([])
    const variables = read(file).match(/\bBULLPEN_[A-Z_]*[A-Z]\b/g) ?? []
    expect(variables.filter((name) => !settings.has(name))).toEqual([])
  })

  it.each(pages.filter((file) => file !== 'CHANGELOG.md'))('%s names files that exist', (file) => {
    const named = read(file).match(/(?<=`)(?:packages|apps|tools|scripts|k8s|docs)\/[\w./-]+(?=`)/g) ?? []
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it.each(pages)('%s quotes its programs as they are', (file) => {
    expect(withQuotes(read(file), join(root, file))).toBe(read(file))
  })

  it.each(pages)('%s has links that lead somewhere', (file) => {
    const prose = read(file).replaceAll(/```[\s\S]*?```/g, '')
    const dead = [...prose.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)]
      .map(([, link = '']) => link)
      .filter((link) => !leadsSomewhere(file, link))
    expect(dead).toEqual([])
  })
})

function leadsSomewhere(file: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? join(root, file) : resolve(root, dirname(file), path)
  if (!existsSync(target)) return false
  return anchor === undefined || anchorsOf(read(relative(root, target))).includes(anchor)
}

/** As GitHub makes them: lower case, dashes for spaces, no punctuation. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-'),
  )
}
