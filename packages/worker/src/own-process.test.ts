// Tests that a program keeps its process and its listeners on it.
import { setImmediate } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ownProcess } from './own-process.ts'

/** Owns the process with a listener for SIGUSR2. No test ends or signals the process. */
function owned(isFromHandler: boolean) {
  const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never)
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
  const acts: string[] = []
  const heard: string[] = []
  const listener = (signal: string): void => void heard.push(signal)
  const release = ownProcess({ SIGUSR2: listener }, (act) => acts.push(act) > 0 && isFromHandler)
  onTestFinished(() => {
    release()
    vi.restoreAllMocks()
  })
  return { exit, kill, acts, heard, listener, release }
}

it('a listener that a handler removes is added again, until the process is released', async () => {
  const { listener, release, heard } = owned(true)
  process.removeAllListeners('SIGUSR2')
  await setImmediate()
  process.off('SIGUSR2', listener)
  await setImmediate()
  process.emit('SIGUSR2', 'SIGUSR2')
  expect(heard).toEqual(['SIGUSR2'])
  process.off('SIGUSR2', listener)
  release()
  await setImmediate()
  expect(process.listeners('SIGUSR2')).toEqual([])
})

it('a handler cannot end the process by process.exit or by a signal that would end it', () => {
  const { exit, kill, acts } = owned(true)
  expect(() => process.exit(3)).toThrow('the handler called process.exit(3)')
  for (const signal of ['SIGUSR2', 'SIGHUP', 15, undefined]) expect(process.kill(process.pid, signal)).toBe(true)
  expect(process.kill(0, 'SIGINT')).toBe(true)
  expect(acts).toEqual([
    'called process.exit(3)',
    ...['SIGUSR2', 'SIGHUP', 'SIGTERM', 'SIGTERM', 'SIGINT'].map((signal) => `sent ${signal} to its own worker`),
  ])
  expect([...exit.mock.calls, ...kill.mock.calls]).toEqual([])
})

it('signals that end nothing, signals to other processes and SIGKILL are sent', () => {
  const { kill, acts } = owned(true)
  const listener = (): void => {}
  process.on('SIGWINCH', listener)
  onTestFinished(() => void process.off('SIGWINCH', listener))
  const sent = [
    [process.pid, 0],
    [process.pid, 'SIGWINCH'],
    [process.pid, 'SIGKILL'],
    [process.ppid, 'SIGTERM'],
  ] as const
  for (const [pid, signal] of sent) process.kill(pid, signal)
  expect(kill.mock.calls).toEqual(sent)
  expect(acts).toEqual([])
})

it('code of the program exits and signals as usual', () => {
  const { exit, kill } = owned(false)
  expect(process.exit(2)).toBeUndefined()
  process.kill(process.pid, 'SIGTERM')
  expect(exit.mock.calls).toEqual([[2]])
  expect(kill.mock.calls).toEqual([[process.pid, 'SIGTERM']])
})
