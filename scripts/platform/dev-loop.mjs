// Restarts programs when their files are saved. The changed program is first loaded in a separate process, so that a syntax error
// or a wrong import never stops a running process. Then its processes are restarted one after another.
import { join, relative } from 'node:path'
import { run } from '../system/programs.mjs'
import { watchFiles } from './file-watcher.mjs'

const BURST = 200 // in ms, because editors and git write several times in a row

const isSource = (file) => /\.(ts|mjs|lua|json|html)$/.test(file) && !/\.test\.[a-z]+$/.test(file)

/**
 * Loads the program and all of its imports without running it.
 * @returns {Promise<string | undefined>} what Node printed if the program cannot be loaded
 */
async function loadError(main, cwd) {
  const loadOnly = join(import.meta.dirname, 'load-only.mjs')
  const { code, stdout, stderr } = await run(process.execPath, ['--import', loadOnly, main], { cwd })
  // Frames inside Node are not helpful for finding the mistake.
  return code === 0 ? undefined : `${stdout}${stderr}`.replace(/^ +at .*node:internal.*\n/gm, '').trim()
}

/**
 * @typedef {object} Program
 * @property {string} main
 * @property {readonly string[]} folders that contain its files
 * @property {readonly string[]} processes that run it, in the order in which they are restarted
 */

/**
 * @param {object} options
 * @param {string} options.root what the programs' paths are relative to
 * @param {readonly Program[]} options.programs
 * @param {(process: string) => Promise<void>} options.restart rejects if the process does not become ready
 * @param {(line: string) => void} options.say
 * @returns {{ close: () => void }}
 */
export function startDevLoop({ root, programs, restart, say }) {
  /** @type {Map<Program, string>} for each program that has to be restarted, the file that was saved */
  const outdated = new Map()
  let timer
  let working = false
  let closed = false

  async function update(program, file) {
    const error = await loadError(program.main, root)
    if (outdated.has(program)) return // a file was saved again in the meantime, so the check is outdated
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
        if (!closed) say(`${failure.message}\n${name} will be restarted on the next save.`)
        return // the other processes keep running the last version
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
