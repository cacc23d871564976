// Measures the number of processes in a process tree, and their resident memory.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'

interface Listed {
  readonly pid: number
  readonly parent: number
  readonly residentBytes: number
}

export interface ProcessTree {
  /** The resident memory of the process alone. */
  readonly ownBytes: number
  /** The number of processes, including the process itself. */
  readonly processes: number
  /** The resident memory of the whole tree. Shared pages are counted once for each process. */
  readonly residentBytes: number
}

export function processTree(root: number): ProcessTree {
  const all = existsSync('/proc/self/status') ? listedByProc() : listedByPs()
  const tree = all.filter(({ pid }) => pid === root)
  // The array grows during the loop.
  for (const { pid } of tree) tree.push(...all.filter(({ parent }) => parent === pid))
  return {
    ownBytes: tree[0]?.residentBytes ?? 0,
    processes: tree.length,
    residentBytes: tree.reduce((sum, { residentBytes }) => sum + residentBytes, 0),
  }
}

function listedByProc(): Listed[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8')
        const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
        return [{ pid: Number(pid), parent: field('PPid'), residentBytes: field('VmRSS') * 1_024 }]
      } catch {
        return [] // the process has ended in the meantime
      }
    })
}

function listedByPs(): Listed[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,rss='], { encoding: 'utf8' }).trim().split('\n')
  return lines.map((line) => {
    const [pid = 0, parent = 0, kilobytes = 0] = line.trim().split(/\s+/).map(Number)
    return { pid, parent, residentBytes: kilobytes * 1_024 }
  })
}
