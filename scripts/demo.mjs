// The main job on real input: MD5 of every file below a directory, on the platform that runs or on one of its own.
import { mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve, sep } from 'node:path'
import { foreground } from './foreground.mjs'
import { readOptions } from './options.mjs'
import { createPlatform, root } from './platform.mjs'
import { runningPlatform } from './platform-file.mjs'
import { endWithMe } from './throwaway-redis.mjs'
import { explain } from './user-error.mjs'

const say = (line) => console.error(line) // stdout is the list

/** Where the user typed DIR: npm runs scripts in the project's folder. */
const cwd = process.env.INIT_CWD ?? process.cwd()

/** The directory as it was typed, since the list begins with it, and its real path, which workers compare with roots. */
function chooseDirectory(dir = root) {
  const path = resolve(cwd, dir)
  try {
    if (statSync(path).isDirectory()) return { dir, real: realpathSync(path) }
    say(`bullpen: ${dir} is not a directory`)
  } catch (error) {
    say(`bullpen: ${error.message}`)
  }
  return process.exit(1)
}

const covers = (filesRoots, real) =>
  filesRoots.some((one) => real === one || real.startsWith(one.endsWith(sep) ? one : `${one}${sep}`))

/** The project's platform if it runs and may read the directory; otherwise one of our own, which ends with us. */
async function findPlatform(real) {
  const there = await runningPlatform(join(root, '.bullpen'))
  if (there !== undefined && covers(there.filesRoots, real)) return { where: there, end: async () => {} }
  if (there !== undefined) say(`The platform at ${there.apiUrl} may not read ${real}: bringing up another one.`)
  const home = mkdtempSync(join(tmpdir(), 'bullpen-demo-'))
  const namespace = `demo-${process.pid}-${Date.now().toString(36)}`
  const platform = createPlatform({ home, filesRoots: [real], namespace, anyPorts: true, say })
  let callOff = () => {}
  const end = async () => {
    await platform.down()
    callOff()
    rmSync(home, { recursive: true, force: true })
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  const early = () => end().then(() => process.exit(1))
  for (const signal of signals) process.once(signal, early)
  try {
    const where = await platform.up()
    if (where.redis.pid !== undefined) callOff = endWithMe({ pid: where.redis.pid, dir: home })
    for (const signal of signals) process.off(signal, early) // from here on the demo ends first, then the platform
    return { where, end }
  } catch (error) {
    if (!platform.stopping) console.error(explain(error))
    await end()
    return process.exit(1)
  }
}

const { values, positionals } = readOptions('npm run demo -- [--kill] [DIR]', {
  options: { kill: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const { dir, real } = chooseDirectory(positionals[0])
const { where, end } = await findPlatform(real)
const code = await foreground(
  process.execPath,
  [
    join(root, 'apps/demo/src/main.ts'),
    ...['--api', where.apiUrl, '--dir', dir],
    ...(positionals.length === 0 ? ['--exclude', '.bullpen', '--exclude', '.git'] : []),
    ...(values.kill ? ['--kill', '--workers', where.workers.map(({ pid }) => pid).join(',')] : []),
  ],
  { cwd, env: { ...process.env, BULLPEN_KEY: where.key } },
)
await end()
process.exit(code)
