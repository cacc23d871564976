// Lists the documentation's pages.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

export const read = (file: string): string => readFileSync(join(root, file), 'utf8')

/** The pages that people write or read in this repository, relative to its root. */
export const pages: readonly string[] = ['*.md', 'docs/**/*.md', 'k8s/*.md', 'packages/**/README.md', 'tools/**/*.md']
  .flatMap((pattern) =>
    globSync(pattern, { cwd: root, exclude: (file) => file.includes('node_modules') || file.endsWith('/dist') }),
  )
  .sort()

/** All pages except for the changelog, which also contains the names of earlier versions. */
export const currentPages: readonly string[] = pages.filter((file) => file !== 'CHANGELOG.md')
