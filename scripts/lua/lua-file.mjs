// Reads one Lua script: its header, its names and its includes.
//
// A script's header is the comment at its top. It says what the script does, then names its keys and arguments in their order, then the
// reply:
//
//   KEYS  lease, fencing
//   ARGV  holder   who asks for the lease
//   ARGV  leaseMs  how long it lasts
//   ARGV[3...]  further arguments
//
//   Returns `[fencing: number, leftMs: number]`: …
//
// The code below it has each of them in a local variable of the same name. A line `--- @include time` is replaced by that include
// (packages/bullmq/src/scripts/includes.ts), which is a header and functions. A line `--- @type Run, Reply from ./run.ts` says where types
// of the reply are from.
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { withIncludes } from '../../packages/bullmq/src/scripts/includes.ts'
import { UserError } from '../system/user-error.mjs'

const INCLUDE = /^ *--- @include (\S+)$/gm
const TYPE = /^--- @type (.+) from (\S+)$/gm
const HEADER = /^(?:--(?: .*)?\n)+/
/** One name and its description after two or more blanks, or names. */
const NAMES = ' {2}(\\w+(?:, \\w+)*)(?: {2,}\\S|$)'
const MALFORMED = new RegExp(`^(?:KEYS|ARGV)(?!${NAMES}|\\[\\d+\\.{3}\\] {2}).*`, 'm')
const FLAGS = { '#!lua': 'adds', '#!lua flags=allow-oom': 'frees', '#!lua flags=no-writes': 'reads' }

/**
 * @typedef {object} LuaScript
 * @property {string} name its file's name
 * @property {'adds' | 'frees' | 'reads'} kind what Redis is told of the script (store/script.ts)
 * @property {readonly string[]} summary the lines of the first paragraph of the header
 * @property {readonly string[]} keys
 * @property {readonly string[]} args
 * @property {string | undefined} reply a TypeScript type
 * @property {readonly { names: readonly string[], from: string }[]} types the types in the reply, and the module or file of each
 * @property {string} lua its text, without comments and with its local variables
 * @property {string} whole the text that Redis runs, with its includes
 */

/** Returns the includes of a folder and of those in it, by the names of their files. */
export function readIncludes(folder) {
  const paths = new Map()
  for (const file of globSync('**/*.lua', { cwd: folder }).toSorted()) {
    const [name, path] = [basename(file, '.lua'), join(folder, file)]
    if (paths.has(name)) throw new UserError(`${path}: ${paths.get(name)} has the same name`)
    paths.set(name, path)
  }
  const names = [...paths.keys()].toSorted()
  const texts = names.map((name) => {
    const path = paths.get(name)
    const text = readFileSync(path, 'utf8')
    headerOf(path, text)
    return [name, ownLua(path, text, names)]
  })
  return Object.fromEntries(texts)
}

/**
 * @param {string} path
 * @param {import('../../packages/bullmq/src/scripts/includes.ts').Includes} includes
 * @returns {LuaScript}
 */
export function readLua(path, includes) {
  const text = readFileSync(path, 'utf8')
  const [first, ...rest] = text.split('\n')
  const kind = FLAGS[first]
  if (kind === undefined) throw new UserError(`${path}:1: expected one of ${Object.keys(FLAGS).join(', ')}`)
  const body = rest.join('\n')
  const header = headerOf(path, body)
  const [summary = ''] = header.split(/\n\s*\n/)
  const [keys, args] = [namesIn(header, 'KEYS'), namesIn(header, 'ARGV')]
  const [malformed] = MALFORMED.exec(header) ?? []
  if (malformed !== undefined) throw new UserError(`${path}: expected names, as in KEYS  lease, fencing: ${malformed}`)
  const [, more] = /^ARGV\[(\d+)\.{3}\] {2}/m.exec(header) ?? []
  if (more !== undefined && Number(more) !== args.length + 1)
    throw new UserError(`${path}: the further arguments begin with ARGV[${more}]; expected ARGV[${args.length + 1}]`)
  const locals = localsFor('KEYS', keys) + localsFor('ARGV', args)
  const lua = `${first}\n${locals}${ownLua(path, body, Object.keys(includes))}`
  return {
    name: /** @type {string} */ (
      path
        .split('/')
        .at(-1)
        ?.replace(/\.lua$/, '')
    ),
    kind,
    summary: summary.trim().split('\n'),
    keys,
    args,
    reply: /Returns `([^`]+)`/.exec(header)?.[1]?.replaceAll(/\s*\n\s*/g, ' '),
    types: [...body.matchAll(TYPE)].map(([, names, from]) => ({
      names: names.split(', '),
      from: from.startsWith('.') ? resolve(dirname(path), from) : from,
    })),
    lua,
    whole: withIncludes(lua, includes),
  }
}

function headerOf(path, text) {
  const [header] = HEADER.exec(text) ?? []
  if (header === undefined) throw new UserError(`${path}: expected a comment at the top that says what the file does`)
  return header.replaceAll(/^-- ?/gm, '')
}

/** Returns the names of the keys or arguments in the header. A line has several names, or one and its description. */
function namesIn(header, table) {
  const lines = header.matchAll(new RegExp(`^${table}${NAMES}`, 'gm'))
  return [...lines].flatMap(([, names]) => names.split(', '))
}

function localsFor(table, names) {
  if (names.length === 0) return ''
  return `local ${names.join(', ')} = ${names.map((_, i) => `${table}[${i + 1}]`).join(', ')}\n`
}

/** Returns the code, and the lines that ask for includes. Other comments are for readers of the file; Redis would keep them in memory. */
function ownLua(path, text, names) {
  for (const [, name] of text.matchAll(INCLUDE))
    if (!names.includes(name)) throw new UserError(`${path}: there is no include ${name}`)
  return text
    .replaceAll(/^ *--(?!- @include ).*\n/gm, '')
    .replaceAll(/\n{2,}/g, '\n')
    .trimStart()
}
