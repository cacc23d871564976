// The platform, restarted piece by piece as files are saved: a worker drains first, and never both at once.
import { watch } from 'node:fs'
import { join } from 'node:path'
import { readOptions } from './options.mjs'
import { root } from './platform.mjs'
import { runHere } from './run-here.mjs'

const QUIET = 200 // ms without another save, since editors and git write in bursts

/** Which processes run the code under each folder. */
const RUNS = [
  ['packages', /^(api|worker-\d+)$/],
  ['apps/api', /^api$/],
  ['apps/worker', /^worker-\d+$/],
]

const matters = (file) =>
  /\.(ts|lua|json|html)$/.test(file) && !/\.test\.ts$|(^|\/)(node_modules|dist|\.turbo)\//.test(file)

function restartOnSave(platform, say) {
  const saved = new Map() // process name → the file that was saved
  let timer
  let working = false

  async function restart() {
    if (working || platform.stopping) return
    working = true
    while (saved.size > 0 && !platform.stopping) {
      const [[name, file]] = saved
      saved.delete(name)
      say(`${file} was saved: restarting ${name}.`)
      await platform.restart(name).catch((error) => say(error.message))
    }
    working = false
  }

  for (const [folder, names] of RUNS) {
    watch(join(root, folder), { recursive: true }, (_, file) => {
      if (file === null || !matters(file)) return
      for (const name of platform.children.keys()) if (names.test(name)) saved.set(name, join(folder, file))
      clearTimeout(timer)
      timer = setTimeout(restart, QUIET)
    })
  }
  say('Watching apps/api, apps/worker and packages.')
}

const { values } = readOptions('npm run dev -- [--fresh]', { options: { fresh: { type: 'boolean', default: false } } })
await runHere({ fresh: values.fresh, onUp: restartOnSave })
