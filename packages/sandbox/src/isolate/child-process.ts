// Implements isolates as child processes. A child process can be killed whatever it is doing, can have a memory limit, and does
// not affect the worker if it crashes. It leads a process group of its own, so that the programs which its handlers start end with it.
import { type ChildProcess, fork } from 'node:child_process'
import { settlesWithin } from '@bullpen/engine/node'
import { built } from '../built.ts'
import { childExecArgv } from '../exec-argv.ts'
import type { EnvelopeToIsolate } from '../protocol/envelope.ts'
import type { ToIsolate } from '../protocol/messages.ts'
import type { IsolateExit, IsolateListener, StartIsolate } from './isolate.ts'
import { type ReadResident, watchMemory } from './memory-limit.ts'
import type { OrphanReaper } from './orphan-reaper.ts'

const ENTRY = built(new URL('../inside/process-entry.ts', import.meta.url))

/**
 * The message that V8 writes before it aborts when memory runs out. SIGABRT also has other causes, and only this message
 * distinguishes them.
 */
const OUT_OF_MEMORY = /heap out of memory|Fatal JavaScript invalid size error/
/** How many characters at the end of stderr to search for that message, which is followed by native and JavaScript stacks. */
const STDERR_TAIL = 16_384
/** How long to wait for the end of the outputs after the exit, in ms. A program that has left the child's group may keep them open. */
const OUTPUT_MS = 250

/** On Windows, there are no process groups, and a detached child would have a console window of its own. */
const HAS_GROUPS = process.platform !== 'win32'

export function childStarter(reaper: OrphanReaper, readResident: ReadResident): StartIsolate {
  return (listener, memoryLimitBytes) => startChild(listener, memoryLimitBytes, reaper, readResident)
}

function startChild(
  { read, onMessage, onExit }: IsolateListener,
  memoryLimitBytes: number | undefined,
  reaper: OrphanReaper,
  readResident: ReadResident,
) {
  // A module of resources may read the same settings as the program.
  const child = fork(ENTRY, process.argv.slice(2), {
    execArgv: childExecArgv(process.execArgv, memoryLimitBytes),
    serialization: 'advanced',
    detached: HAS_GROUPS,
    // A child that ends an inherited output would end it for the worker and its other children as well.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const { pid = 0 } = child
  const name = `process ${pid}`
  let killed = false
  let exceeded: number | undefined
  const kill = (): void => killGroup(child)

  const memory = watchMemory(
    memoryLimitBytes,
    () => readResident(pid),
    (takenBytes) => {
      exceeded = takenBytes
      kill()
    },
  )
  if (pid !== 0) {
    reaper.watch(pid)
    child.once('exit', () => {
      kill()
      reaper.forget(pid)
    })
  }
  // A handler may have closed the channel. Without it, nothing else would end the attempt.
  child.once('disconnect', kill)
  child.on('message', (received: unknown) => {
    const message = read(received)
    if (message === undefined) return
    if (message.kind === 'memory') return memory.report(message.residentBytes)
    if (message.kind === 'ready') memory.start()
    if (message.kind === 'imported') memory.addToBaseline(message.residentBytes)
    onMessage(message)
  })
  void exitOf(child).then(({ failure, exitCode, signal, stderr }) => {
    memory.stop()
    if (failure !== undefined)
      onExit({ reason: 'isolate_died', message: `${name}: ${failure.message}`, cause: failure })
    else if (exceeded !== undefined) onExit(overLimit(name, exceeded, memoryLimitBytes))
    else if (OUT_OF_MEMORY.test(stderr)) onExit(heapFull(name, memoryLimitBytes))
    else onExit({ reason: 'isolate_died', message: `${name} ${describeExit(killed, exitCode, signal)}` })
  })

  return {
    name,
    // Without a callback, sending to a child that has died would emit an 'error' event.
    send: (message: ToIsolate) => void child.send({ isolate: message } satisfies EnvelopeToIsolate, () => {}),
    kill() {
      killed = true
      kill()
    },
    isFull: () => memory.isHalfFull(),
  }
}

/** Kills the child and the programs that it has started. After the child's exit, kills those that are left. */
function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(HAS_GROUPS ? -child.pid : child.pid, 'SIGKILL')
  } catch {
    // No process of the group is left.
  }
}

interface ChildExit {
  /** The error if the child could not be started. */
  readonly failure?: Error
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly stderr: string
}

/** Resolves when the child has exited and everything that it sent or wrote has been read. */
async function exitOf(child: ChildProcess): Promise<ChildExit> {
  let stderr = ''
  child.stdout?.on('data', (bytes: Buffer) => relay(process.stdout, bytes))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    relay(process.stderr, text)
    stderr = (stderr + text).slice(-STDERR_TAIL)
  })
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const disconnected = new Promise<void>((resolve) => child.once('disconnect', () => resolve()))
  const failed = new Promise<Error>((resolve) => {
    // A later error concerns a message or a signal to a child that is already gone.
    child.on('error', (error) => {
      if (child.pid === undefined) resolve(error)
    })
  })
  const exited = new Promise<Pick<ChildExit, 'exitCode' | 'signal'>>((resolve) =>
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal })),
  )
  const end = await Promise.race([exited, failed])
  if (end instanceof Error) return { failure: end, exitCode: null, signal: null, stderr }
  await disconnected
  await settlesWithin(closed, OUTPUT_MS)
  child.stdout?.destroy()
  child.stderr?.destroy()
  return { ...end, stderr }
}

/** A handler may have ended the worker's own output, and a write would then be an uncaught error. */
function relay(output: NodeJS.WriteStream, written: Buffer | string): void {
  if (output.writable) output.write(written)
}

const inMiB = (bytes: number | undefined): number => Math.round((bytes ?? 0) / 2 ** 20)

function overLimit(name: string, takenBytes: number, limitBytes: number | undefined): IsolateExit {
  const message = `${name} used ${inMiB(takenBytes)} MiB of memory; its limit is ${inMiB(limitBytes)} MiB`
  return { reason: 'out_of_memory', message }
}

function heapFull(name: string, limitBytes: number | undefined): IsolateExit {
  const limit = limitBytes === undefined ? "Node's own" : `${inMiB(limitBytes)} MiB`
  return { reason: 'out_of_memory', message: `${name} ran out of heap; its limit is ${limit}` }
}

function describeExit(killed: boolean, exitCode: number | null, signal: NodeJS.Signals | null): string {
  if (killed) return 'was killed'
  return signal === null ? `exited with code ${exitCode}` : `was terminated by ${signal}`
}
