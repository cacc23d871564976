// npm run demo: prints the MD5 of every file below a directory, computed on the running platform or on a temporary one.
import { mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve, sep } from 'node:path'
import { createPlatform, root } from './platform/platform.mjs'
import { runningPlatform } from './platform/platform-record.mjs'
import { foreground } from './system/foreground.mjs'
import { readOptions } from './system/options.mjs'
import { stopWithThisProcess } from './system/stop-with-this-process.mjs'
import { explain, explainAndExit, UserError } from './system/user-error.mjs'

const say = (line) => console.error(line) // stdout is reserved for the list

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * The folder in which the user typed the command. It may differ from this process's working directory, because npm runs scripts
 * in the project's folder.
 */
const cwd = process.env.INIT_CWD ?? process.cwd()

/**
 * Returns the directory as the user typed it, because the paths in the list begin with it, and its real path, which workers check
 * against their roots.
 */
function chooseDirectory(dir = root) {
  const path = resolve(cwd, dir)
  try {
    if (statSync(path).isDirectory()) return { dir, real: realpathSync(path) }
    say(`bullpen: ${dir} is not a directory`)
  } catch (error) {
    say(error.code === 'ENOENT' ? `bullpen: directory ${path} does not exist` : `bullpen: ${error.message}`)
  }
  return process.exit(1)
}

const covers = (filesRoots, real) =>
  filesRoots.some((one) => real === one || real.startsWith(one.endsWith(sep) ? one : `${one}${sep}`))

/** Returns the project's platform if it is running and may read the directory, or else a temporary platform. */
async function openPlatform(real, installRedis) {
  const running = await runningPlatform(join(root, '.bullpen'))
  if (running !== undefined && covers(running.filesRoots, real)) return { details: running, close: async () => {} }
  if (running !== undefined)
    say(`The platform at ${running.apiUrl} is not allowed to read ${real}; starting a temporary one.`)
  const home = mkdtempSync(join(tmpdir(), 'bullpen-demo-'))
  const namespace = `demo-${process.pid}-${Date.now().toString(36)}`
  const platform = createPlatform({ home, filesRoots: [real], namespace, installRedis, anyPorts: true, say })
  let cancelCleanup = () => {}
  const stop = async () => {
    await platform.down()
    cancelCleanup()
    rmSync(home, { recursive: true, force: true })
  }
  let closing
  const close = () => {
    closing ??= stop()
    return closing
  }
  // No Ctrl-C may end this process before it has deleted what the platform has stored. The drains have limits of their own.
  for (const signal of SIGNALS) process.on(signal, () => closing && say('The temporary platform is stopping.'))
  const interrupted = () => close().then(() => process.exit(1))
  for (const signal of SIGNALS) process.once(signal, interrupted)
  try {
    const details = await platform.up()
    if (details.redis.pid !== undefined) cancelCleanup = stopWithThisProcess({ pid: details.redis.pid, dir: home })
    for (const signal of SIGNALS) process.off(signal, interrupted) // the demo handles them now; the platform stops after it
    return { details, close }
  } catch (error) {
    if (!platform.stopping) console.error(explain(error))
    await close()
    return process.exit(1)
  }
}

const { values, positionals } = readOptions(
  `npm run demo -- [--mode MODE] [--kill] [--install-redis] [DIR]

Prints the MD5 of every file below DIR (default: this project), as md5sum would. The files are found, read and sorted by a pipeline.

  --mode MODE      serial: read one file at a time; parallel: as many as the workers have slots, up to 1000;
                   bounded: at most 20 at a time (default)
  --kill           kill a worker while it is reading files; the printed list stays the same
  --install-redis  install Redis with the system's package manager if this machine has none`,
  {
    options: {
      mode: { type: 'string', default: 'bounded' },
      kill: { type: 'boolean', default: false },
      'install-redis': { type: 'boolean', default: false },
    },
    allowPositionals: true,
  },
)
if (!['serial', 'parallel', 'bounded'].includes(values.mode))
  explainAndExit(new UserError(`--mode is '${values.mode}'; expected serial, parallel or bounded`))
if (positionals.length > 1) {
  const rest = positionals.slice(1).map((each) => `'${each}'`)
  explainAndExit(
    new UserError(`unexpected argument ${rest.join(' ')}; expected one directory, or none for this project`),
  )
}
const { dir, real } = chooseDirectory(positionals[0])
const { details, close } = await openPlatform(real, values['install-redis'])
const code = await foreground(
  process.execPath,
  [
    join(root, 'apps/demo/src/main.ts'),
    ...['--api', details.apiUrl, '--dir', dir, '--mode', values.mode],
    ...(positionals.length === 0 ? ['--exclude', '.bullpen', '--exclude', '.git'] : []),
    ...(values.kill ? ['--kill', '--workers', details.workers.map(({ pid }) => pid).join(',')] : []),
  ],
  { cwd, env: { ...process.env, BULLPEN_KEY: details.key } },
)
await close()
process.exit(code)
