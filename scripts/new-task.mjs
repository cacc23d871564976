// Writes a new task: its definition, its handler, a test, and its place in the catalogue and among the handlers.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from './user-error.mjs'

const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*(\.[a-z][a-z0-9]*(-[a-z0-9]+)*)+$/

const camel = (text) => text.replace(/[.-]([a-z0-9])/g, (_, letter) => letter.toUpperCase())

const definition = ({ name, queue, identifier }) => `// The contract of ${name}.
import { defineTask } from '@bullpen/contract'
import { z } from 'zod'

export const ${identifier} = defineTask({
  name: '${name}',
  queue: '${queue}',
  kind: 'long',
  input: z.object({ to: z.string().min(1) }),
  output: z.object({ greeting: z.string() }),
  timeout: '30s',
  retry: { maxAttempts: 3 },
})
`

const handler = ({ name, identifier }) => `// Handles ${name}.
import { defineHandler } from '@bullpen/contract'
import { ${identifier} } from '@bullpen/tasks'

export default defineHandler(${identifier}, import.meta.url, async ({ input }) => {
  return { greeting: \`Hello, \${input.to}\` }
})
`

const test = ({ name, file, identifier }) => `// Tests what ${name} does with its input.
import { ${identifier} } from '@bullpen/tasks'
import { runTask } from '@bullpen/testkit'
import { expect, test } from 'vitest'
import handler from './${file}.ts'

test('${name} answers as its contract says', async () => {
  const run = await runTask(${identifier}, handler, { to: 'Ann' })
  expect(run.status).toBe('completed')
  expect(run.output).toEqual({ greeting: 'Hello, Ann' })
})
`

/** Replaces what `pattern` finds; a file that no longer looks as expected is an error, not a silent no-op. */
function edit(path, ...changes) {
  let text = readFileSync(path, 'utf8')
  for (const [pattern, replacement] of changes) {
    if (!pattern.test(text)) throw new UserError(`${path} has nothing like ${pattern}: add the task there by hand`)
    text = text.replace(pattern, replacement)
  }
  return [path, text]
}

/**
 * Adds the task to the repository at `root`, and returns the files written, new ones first.
 * @param {{ root: string, name: string }} options
 */
export function addTask({ root, name }) {
  if (!NAME.test(name)) {
    throw new UserError(
      `"${name}" is not a task's name: it is words in lower case, with at least one dot, like email.welcome`,
    )
  }
  const file = name.replaceAll('.', '-')
  const task = { name, file, identifier: camel(name), queue: name.split('.')[0] }
  const tasks = join(root, 'packages/tasks/src')
  const handlers = join(root, 'apps/worker/src/handlers')
  const created = [
    [join(tasks, `${file}.ts`), definition(task)],
    [join(handlers, `${file}.ts`), handler(task)],
    [join(handlers, `${file}.test.ts`), test(task)],
  ]
  const there = created.map(([path]) => path).find((path) => existsSync(path))
  if (there !== undefined) throw new UserError(`${name} exists already: ${there}`)

  const { identifier } = task
  const changed = [
    edit(
      join(tasks, 'index.ts'),
      [/\n\nexport \{/, `\nimport { ${identifier} } from './${file}.ts'$&`],
      [/export \{([^}]*?),? \}/, `export {$1, ${identifier} }`],
      [/defineCatalogue\(([^)]*?),?\s*\)/, `defineCatalogue($1, ${identifier})`],
    ),
    edit(
      join(handlers, 'index.ts'),
      [/\n\nexport const handlers/, `\nimport ${identifier} from './${file}.ts'$&`],
      [/\n\} satisfies Handlers/, `\n  '${name}': ${identifier},$&`],
    ),
  ]
  for (const [path, text] of [...created, ...changed]) writeFileSync(path, text)
  return [...created, ...changed].map(([path]) => path)
}
