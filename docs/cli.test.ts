// cli.md quotes the program's help texts word for word, and has its exit codes.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { COMMAND_NAMES } from '../packages/cli/src/commands/command-table.ts'
import { EXIT_MEANINGS } from '../packages/cli/src/exit-codes.ts'
import { commandHelp, generalHelp } from '../packages/cli/src/help.ts'
import { rows, section } from './markdown-tables.ts'

const quoted = (heading: string) => /```text\n([\s\S]*?)```/.exec(section('cli.md', heading))?.[1]

it('docs/cli.md quotes the general help as it is', () => {
  expect(readFileSync(new URL('cli.md', import.meta.url), 'utf8')).toContain(`\`\`\`text\n${generalHelp()}\`\`\``)
})

it.each(COMMAND_NAMES)('docs/cli.md quotes the help of %s as it is', (name) => {
  expect(quoted(`bullpen ${name}`)).toBe(commandHelp(name))
})

it('docs/cli.md lists every exit code with its meaning, and no other', () => {
  expect(rows(section('cli.md', 'Output'))).toEqual(Object.entries(EXIT_MEANINGS))
})
