// Pages quote programs from files that tests run. A quote is a code fence below a comment that names the file.
import { readFileSync } from 'node:fs'
import { dirname, extname, resolve } from 'node:path'

const QUOTE = /<!-- file: (\S+) -->\n\n```\w*\n[\s\S]*?\n```/g

/** The page with each quoted file as it is now. `path` is the page's own. */
export function withQuotes(page: string, path: string): string {
  return page.replaceAll(QUOTE, (_, file: string) => {
    const text = readFileSync(resolve(dirname(path), file), 'utf8').replace(/^\/\/ The example of docs\/.*\n/, '')
    return `<!-- file: ${file} -->\n\n\`\`\`${LANGUAGES[extname(file)] ?? 'text'}\n${text.trimEnd()}\n\`\`\``
  })
}

const LANGUAGES: Readonly<Record<string, string>> = {
  '.ts': 'ts',
  '.yaml': 'yaml',
  '.json': 'json',
  '.out': 'text',
  '': 'dockerfile',
}
