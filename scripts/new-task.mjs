// Writes a new task's definition, handler and test, and registers them in the catalogue and the handler table.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from './system/user-error.mjs'

const NAME = /^[A-Za-z][\w.-]{0,99}$/

const camel = (text) =>
  text
    .replace(/[._-]+([A-Za-z0-9])?/g, (_, letter = '') => letter.toUpperCase())
    .replace(/^[A-Z]/, (letter) => letter.toLowerCase())

/** Returns the words of a name in lower case, as in the names of files and queues: `send-welcome` for `sendWelcome`. */
const kebab = (text) =>
  text
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replace(/[._-]+/g, '-')
    .replace(/-$/, '')
    .toLowerCase()

/** What the new files already use. */
const TAKEN = new Set([
  'z',
  'handler',
  'test',
  'expect',
  'run',
  'runTask',
  'defineTask',
  'defineHandler',
  'defineCatalogue',
  'catalogue',
  'handlers',
])

/** Returns the constant of a task. A name of one word may be a word of JavaScript, such as `import`. */
function identifierOf(name) {
  const identifier = camel(name)
  try {
    new Function(`'use strict'; const ${identifier} = 0`)
    return TAKEN.has(identifier) ? `${identifier}Task` : identifier
  } catch {
    return `${identifier}Task`
  }
}

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

const test = ({ name, file, identifier }) => `import { ${identifier} } from '@bullpen/tasks'
import { runTask } from '@bullpen/testkit'
import { expect, test } from 'vitest'
import handler from './${file}.ts'

test('${name} returns the output of its contract', async () => {
  const run = await runTask(${identifier}, handler, { to: 'Ann' })
  expect(run.status).toBe('completed')
  expect(run.output).toEqual({ greeting: 'Hello, Ann' })
})
`

/** Replaces the match of each pattern, and throws if a file does not have the expected form. */
function edit(path, ...changes) {
  let text = readFileSync(path, 'utf8')
  for (const [pattern, replacement] of changes) {
    if (!pattern.test(text)) throw new UserError(`${path} does not match ${pattern}; add the task there by hand`)
    text = text.replace(pattern, replacement)
  }
  return [path, text]
}

/**
 * Adds the task to the repository at `root`. `files` lists all written files, new ones first.
 * @param {{ root: string, name: string }} options
 */
export function addTask({ root, name }) {
  if (!NAME.test(name)) {
    throw new UserError(
      `"${name}" is not a task name; expected a letter followed by letters, digits, dots, hyphens and underscores, such as email.welcome`,
    )
  }
  const file = kebab(name)
  // The name of a queue has at most 40 characters.
  const queue = kebab(name.split('.')[0]).slice(0, 40)
  const task = { name, file, identifier: identifierOf(name), queue }
  const tasks = join(root, 'packages/tasks/src')
  const handlers = join(root, 'apps/worker/src/handlers')
  const paths = {
    definition: join(tasks, `${file}.ts`),
    handler: join(handlers, `${file}.ts`),
    test: join(handlers, `${file}.test.ts`),
  }
  const created = [
    [paths.definition, definition(task)],
    [paths.handler, handler(task)],
    [paths.test, test(task)],
  ]
  const existing = Object.values(paths).find((path) => existsSync(path))
  if (existing !== undefined) throw new UserError(`${name} already exists: ${existing}`)

  const { identifier } = task
  const changed = [
    edit(
      join(tasks, 'index.ts'),
      [/\n\nexport \{/, `\nimport { ${identifier} } from './${file}.ts'$&`],
      [/export \{([^}]*?),?\s*\}/, `export {$1, ${identifier} }`],
      [/defineCatalogue\(([^)]*?),?\s*\)/, `defineCatalogue($1, ${identifier})`],
    ),
    edit(
      join(handlers, 'index.ts'),
      [/\n\nexport const handlers/, `\nimport ${identifier} from './${file}.ts'$&`],
      [/\n\} satisfies Handlers/, `\n  '${name}': ${identifier},$&`],
    ),
  ]
  for (const [path, text] of [...created, ...changed]) writeFileSync(path, text)
  return { ...paths, files: [...created, ...changed].map(([path]) => path) }
}
