// Isolates that are child processes: killable whatever they do, with a memory limit, and a crash that is theirs alone.
import { type ChildProcess, fork } from 'node:child_process'
import { built } from '../built.ts'
import { childExecArgv } from '../exec-argv.ts'
import type { FromIsolate, ToIsolate } from '../protocol/messages.ts'
import type { Death, IsolateListener, StartIsolate } from './isolate.ts'
import type { Undertaker } from './orphan-reaper.ts'
import { type ReadResident, watchMemory } from './resident-memory.ts'

const ENTRY = built(new URL('../inside/process-entry.ts', import.meta.url))

/** V8's last words. An exit by SIGABRT has other causes, too, and nothing else tells them apart. */
const OUT_OF_MEMORY = /heap out of memory|Fatal JavaScript invalid size error/
/** Of what a child wrote to stderr, so much is kept to find them: native and JavaScript stacks come after them. */
const LAST_WORDS = 16_384
/** From the exit to the end of its stderr; a grandchild that has inherited it may keep it open for ever. */
const LAST_WORDS_MS = 250

export function childStarter(undertaker: Undertaker, look: ReadResident): StartIsolate {
  return (listener, memoryLimitBytes) => startChild(listener, memoryLimitBytes, undertaker, look)
}

function startChild(
  { heard, ended }: IsolateListener,
  memoryLimitBytes: number | undefined,
  undertaker: Undertaker,
  look: ReadResident,
) {
  const child = fork(ENTRY, [], {
    execArgv: childExecArgv(process.execArgv, memoryLimitBytes),
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  })
  const { pid = 0 } = child
  const name = `process ${pid}`
  let killed = false
  let exceeded: number | undefined

  const memory = watchMemory(
    memoryLimitBytes,
    () => look(pid),
    (takenBytes) => {
      exceeded = takenBytes
      child.kill('SIGKILL')
    },
  )
  if (pid !== 0) {
    undertaker.born(pid)
    child.once('exit', () => undertaker.died(pid))
  }
  child.on('message', (message: FromIsolate) => {
    if (message.kind === 'memory') return memory.told(message.residentBytes)
    if (message.kind === 'ready') memory.began()
    if (message.kind === 'imported') memory.needs(message.residentBytes)
    heard(message)
  })
  void endOf(child).then(({ failure, exitCode, signal, stderr }) => {
    memory.stop()
    if (failure !== undefined) ended({ reason: 'isolate_died', message: `${name}: ${failure.message}`, cause: failure })
    else if (exceeded !== undefined) ended(overLimit(name, exceeded, memoryLimitBytes))
    else if (OUT_OF_MEMORY.test(stderr)) ended(heapFull(name, memoryLimitBytes))
    else ended({ reason: 'isolate_died', message: `${name} ${wordsFor(killed, exitCode, signal)}` })
  })

  return {
    name,
    // Without a callback, a message that comes too late for a child that has died would be thrown as an 'error' event.
    send: (message: ToIsolate) => void child.send(message, () => {}),
    kill() {
      killed = true
      child.kill('SIGKILL')
    },
    isFull: () => memory.isHalfFull(),
  }
}

interface End {
  /** It could not be started. */
  readonly failure?: Error
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly stderr: string
}

/** When it has exited, all that it sent is read, and so is what it wrote to stderr. */
async function endOf(child: ChildProcess): Promise<End> {
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    process.stderr.write(text)
    stderr = (stderr + text).slice(-LAST_WORDS)
  })
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const disconnected = new Promise<void>((resolve) => child.once('disconnect', () => resolve()))
  const failed = new Promise<Error>((resolve) => {
    // One that comes later than the start tells of a message or a signal to a child that is gone.
    child.on('error', (error) => {
      if (child.pid === undefined) resolve(error)
    })
  })
  const exited = new Promise<Pick<End, 'exitCode' | 'signal'>>((resolve) =>
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal })),
  )
  const end = await Promise.race([exited, failed])
  if (end instanceof Error) return { failure: end, exitCode: null, signal: null, stderr }
  await disconnected
  let timer: NodeJS.Timeout | undefined
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LAST_WORDS_MS)
  })
  await Promise.race([closed, enough])
  clearTimeout(timer)
  child.stderr?.destroy()
  return { ...end, stderr }
}

const inMiB = (bytes: number | undefined): number => Math.round((bytes ?? 0) / 2 ** 20)

function overLimit(name: string, takenBytes: number, limitBytes: number | undefined): Death {
  const message = `${name} took ${inMiB(takenBytes)} MiB of memory; its limit is ${inMiB(limitBytes)} MiB`
  return { reason: 'out_of_memory', message }
}

function heapFull(name: string, limitBytes: number | undefined): Death {
  const limit = limitBytes === undefined ? "Node's own" : `${inMiB(limitBytes)} MiB`
  return { reason: 'out_of_memory', message: `${name} ran out of heap; its limit is ${limit}` }
}

function wordsFor(killed: boolean, exitCode: number | null, signal: NodeJS.Signals | null): string {
  if (killed) return 'was killed'
  return signal === null ? `exited with code ${exitCode}` : `was ended by ${signal}`
}
