// Pages quote programs from files that are run by tests. A quote is a code fence below a comment that names the file.
import { readFileSync } from 'node:fs'
import { dirname, extname, resolve } from 'node:path'

const QUOTE = /<!-- file: (\S+) -->\n\n```\w*\n[\s\S]*?\n```/g

/** Returns the page with each quote replaced by the file's current text. `path` is the path of the page. */
export function withQuotes(page: string, path: string): string {
  return page.replaceAll(QUOTE, (_, file: string) => {
    const text = readFileSync(resolve(dirname(path), file), 'utf8').replace(/^(?:\/\/|#) The example of docs\/.*\n/, '')
    return `<!-- file: ${file} -->\n\n\`\`\`${LANGUAGES[extname(file)] ?? 'text'}\n${text.trimEnd()}\n\`\`\``
  })
}

const LANGUAGES: Readonly<Record<string, string>> = {
  '.ts': 'ts',
  '.py': 'python',
  '.yaml': 'yaml',
  '.json': 'json',
  '.out': 'text',
  '': 'dockerfile',
}
