// npm run lua: formats the Lua files, checks them, and writes the module with every script. --check changes nothing and fails if
// anything would change. `show NAME` prints a script as Redis runs it.
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Config, formatCode, IndentType, OutputVerification, QuoteStyle } from '@johnnymorganz/stylua'
import { expectKnownNames } from './lua/global-names.mjs'
import { readIncludes, readLua } from './lua/lua-file.mjs'
import { typedModule } from './lua/typed-module.mjs'
import { readOptions } from './system/options.mjs'
import { explainAndExit, UserError } from './system/user-error.mjs'

const root = join(import.meta.dirname, '..')
const SOURCES = join(root, 'packages/bullmq/src')
const STORE = join(SOURCES, 'store')
const INCLUDES = join(STORE, 'lua/includes')
const MODULE = join(STORE, 'scripts.ts')

/** Returns the file's text as StyLua formats it. */
function formatted(path) {
  const config = Config.new()
  config.indent_type = IndentType.Spaces
  config.indent_width = 2
  config.column_width = 120
  config.quote_style = QuoteStyle.AutoPreferSingle
  try {
    return formatCode(readFileSync(path, 'utf8'), config, undefined, OutputVerification.None)
  } catch (error) {
    const [first] = String(error)
      .split('\n')
      .filter((line) => line.includes('unexpected'))
    throw new UserError(`${relative(root, path)}: ${(first ?? String(error)).replace(/^ - /, '')}`)
  }
}

function asBiomeFormats(text) {
  const biome = join(root, 'node_modules/@biomejs/biome/bin/biome')
  return execFileSync(process.execPath, [biome, 'format', `--stdin-file-path=${MODULE}`], {
    input: text,
    encoding: 'utf8',
  })
}

/** Returns what each file should contain, by its path. */
export function expectedFiles() {
  const paths = globSync('**/*.lua', { cwd: SOURCES })
    .toSorted()
    .map((path) => join(SOURCES, path))
  const expected = new Map(paths.map((path) => [path, formatted(path)]))
  const includes = readIncludes(INCLUDES)
  const scripts = paths.filter((path) => !path.startsWith(INCLUDES)).map((path) => readLua(path, includes))
  const repeated = scripts.find(({ name }, i) => scripts.findIndex((other) => other.name === name) !== i)
  if (repeated !== undefined) throw new UserError(`two scripts are called ${repeated.name}`)
  for (const { name, whole } of scripts) expectKnownNames(name, whole)
  expected.set(MODULE, asBiomeFormats(typedModule(scripts, STORE, includes)))
  return { expected, scripts }
}

function main() {
  const { values, positionals } = readOptions(
    `npm run lua -- [--check] [show NAME]

Formats the Lua files, checks them, and writes packages/bullmq/src/store/scripts.ts.

  --check    change nothing, and fail if a file would change
  show NAME  print the script NAME as Redis runs it`,
    { options: { check: { type: 'boolean', default: false } }, allowPositionals: true },
  )
  const { expected, scripts } = expectedFiles()
  const [command, name] = positionals
  if (command === 'show') {
    const found = scripts.find((script) => script.name === name)
    if (found === undefined)
      throw new UserError(`no script is called ${name}; there are: ${scripts.map((each) => each.name).join(', ')}`)
    process.stdout.write(found.whole)
    return
  }
  const changed = [...expected].filter(([path, text]) => contentOf(path) !== text)
  if (values.check && changed.length > 0) {
    const paths = changed.map(([path]) => `  ${relative(root, path)}`).join('\n')
    throw new UserError(`these files are not as npm run lua writes them:\n${paths}`)
  }
  for (const [path, text] of changed) writeFileSync(path, text)
  // The module holds the scripts as they are formatted.
  if (changed.some(([path]) => path.endsWith('.lua'))) writeFileSync(MODULE, expectedFiles().expected.get(MODULE))
}

function contentOf(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

if (process.argv[1] === import.meta.filename) {
  try {
    main()
  } catch (error) {
    explainAndExit(error)
  }
}
