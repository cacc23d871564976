// Reads the documents as the tests need them: the tables and diagrams below a heading.
import { readFileSync } from 'node:fs'

/** The text from a heading to the next one, whatever its level. Throws when there is no such heading. */
export function section(file: string, heading: string): string {
  const text = readFileSync(new URL(file, import.meta.url), 'utf8')
  const [, found] = text.split(new RegExp(`^#+ ${heading}$`, 'm'))
  if (found === undefined) throw new Error(`${file} has no heading "${heading}"`)
  return found.split(/^#+ /m, 1)[0] ?? ''
}

/** The rows of the tables in a section, without their heads; backticks are left out. */
export function rows(markdown: string): string[][] {
  return markdown
    .split('\n')
    .filter((line, i, lines) => line.startsWith('|') && !isRule(line) && !isRule(lines[i + 1] ?? ''))
    .map((line) => line.slice(1, -1).split('|').map(plain))
}

function isRule(line: string): boolean {
  return /^\|[\s|:-]+\|$/.test(line)
}

function plain(cell: string): string {
  return cell.replaceAll('`', '').trim()
}
