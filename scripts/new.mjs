// Makes what a developer would otherwise copy by hand: npm run new -- task NAME
import { join, relative } from 'node:path'
import { addTask } from './new-task.mjs'
import { readOptions } from './options.mjs'
import { run } from './programs.mjs'
import { explainAndExit, UserError } from './user-error.mjs'

const usage = 'npm run new -- task NAME'
const root = join(import.meta.dirname, '..')
const { positionals } = readOptions(usage, { allowPositionals: true })
const [what, name] = positionals

try {
  if (what !== 'task' || name === undefined || positionals.length > 2) throw new UserError(`Usage: ${usage}`)
  const files = addTask({ root, name }).map((path) => relative(root, path))
  await run(join(root, 'node_modules/.bin/biome'), ['check', '--write', ...files], { cwd: root })
  console.log(`${name} is there:\n${files.map((file) => `  ${file}`).join('\n')}\n`)
  console.log(`Say what it takes and gives in ${files[0]}, and do it in ${files[1]}. Then: npm test`)
} catch (error) {
  explainAndExit(error)
}
