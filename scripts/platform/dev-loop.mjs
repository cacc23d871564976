// Restarts programs as their files are saved. A program is loaded in a process of its own first, so that a syntax error
// or a wrong import never costs a running process; its processes are then restarted one after the other.
import { join, relative } from 'node:path'
import { run } from '../system/programs.mjs'
import { watchFiles } from './file-watcher.mjs'

const BURST = 200 // ms: editors and git write several times in a row

const isSource = (file) => /\.(ts|mjs|lua|json|html)$/.test(file) && !/\.test\.[a-z]+$/.test(file)

/**
 * Loads the program and all of its imports without running it.
 * @returns {Promise<string | undefined>} what Node printed if it cannot be loaded
 */
async function loadError(main, cwd) {
  const loadOnly = join(import.meta.dirname, 'load-only.mjs')
  const { code, stdout, stderr } = await run(process.execPath, ['--import', loadOnly, main], { cwd })
  // Frames inside Node say nothing about the mistake.
  return code === 0 ? undefined : `${stdout}${stderr}`.replace(/^ +at .*node:internal.*\n/gm, '').trim()
}

/**
 * @typedef {object} Program
 * @property {string} main
 * @property {readonly string[]} folders whose files it is made of
 * @property {readonly string[]} processes that run it, restarted in this order
 */

/**
 * @param {object} options
 * @param {string} options.root what the programs' paths are relative to
 * @param {readonly Program[]} options.programs
 * @param {(process: string) => Promise<void>} options.restart rejects if the process does not get ready
 * @param {(line: string) => void} options.say
 * @returns {{ close: () => void }}
 */
export function startDevLoop({ root, programs, restart, say }) {
  /** @type {Map<Program, string>} the file that was saved, by program that has to be restarted */
  const outdated = new Map()
  let timer
  let working = false
  let closed = false

  async function update(program, file) {
    const error = await loadError(program.main, root)
    if (outdated.has(program)) return // saved again meanwhile: what was loaded is old
    if (error !== undefined) {
      say(`${error}\n${file} was saved, but ${program.main} cannot be loaded. Still running the last version.`)
      return
    }
    for (const name of program.processes) {
      if (closed) return
      say(`${file} was saved: restarting ${name}.`)
      try {
        await restart(name)
      } catch (failure) {
        if (!closed) say(`${failure.message}\n${name} is restarted on the next save.`)
        return // the other processes go on with the last version
      }
    }
  }

  async function work() {
    if (working) return
    working = true
    while (outdated.size > 0 && !closed) {
      const [[program, file]] = outdated
      outdated.delete(program)
      await update(program, file)
    }
    working = false
  }

  const folders = new Set(programs.flatMap((program) => program.folders))
  const watchers = [...folders].map((folder) =>
    watchFiles(join(root, folder), (file) => {
      if (!isSource(file)) return
      for (const program of programs) {
        if (program.folders.includes(folder)) outdated.set(program, relative(root, join(root, folder, file)))
      }
      clearTimeout(timer)
      timer = setTimeout(work, BURST)
    }),
  )
  return {
    close() {
      closed = true
      clearTimeout(timer)
      for (const watcher of watchers) watcher.close()
    },
  }
}
