// npm run new: writes the files of a new task.
import { join, relative } from 'node:path'
import { addTask } from './new-task.mjs'
import { readOptions } from './system/options.mjs'
import { run } from './system/programs.mjs'
import { explainAndExit, UserError } from './system/user-error.mjs'

const usage = 'npm run new -- task NAME'
const root = join(import.meta.dirname, '..')
const { positionals } = readOptions(
  `${usage}

Creates a definition, a handler and a test for the task NAME, such as email.welcome, and registers the task.`,
  { allowPositionals: true },
)
const [what, name] = positionals

try {
  if (what !== 'task' || name === undefined || positionals.length > 2) throw new UserError(`usage: ${usage}`)
  const { definition, handler, test, files } = addTask({ root, name })
  const inProject = (path) => relative(root, path)
  await run(join(root, 'node_modules/.bin/biome'), ['check', '--write', ...files.map(inProject)], { cwd: root })
  console.log(`Created ${name}:\n${files.map((path) => `  ${inProject(path)}`).join('\n')}\n`)
  console.log(`Next: edit the input and output in ${inProject(definition)} and the handler in ${inProject(handler)}.`)
  console.log(`Then run its test: npm test -- ${inProject(test)}`)
} catch (error) {
  explainAndExit(error)
}
