// Notices what a task has changed in its isolate that would change what later tasks do, so that the isolate can be replaced.
//
// Only what is known to be there is compared: a new global, a timer or a socket that a task leaves does not change other code. This takes
// less than a millisecond after each task.
import { syncBuiltinESMExports } from 'node:module'
import process from 'node:process'
import { isMainThread } from 'node:worker_threads'
import { type BuiltIns, watchBuiltIns } from '../built-ins/built-ins.ts'

// A task may replace these methods as well.
const { isExtensible } = Object
const { defineProperty, deleteProperty, get, set } = Reflect
const { stringify } = JSON

export interface TouchedWatch {
  /** Remembers the state of the isolate. */
  remember(): void
  /** Returns the name of something that has changed since, if anything has. Never throws. */
  find(): string | undefined
}

/** Call this once, before anything reads `process.env`. */
export function watchTouched(): TouchedWatch {
  const environment = watchEnvironment()
  let builtIns: BuiltIns | undefined
  let before: Readonly<Record<string, unknown>> | undefined
  return {
    remember() {
      if (builtIns === undefined) builtIns = watchBuiltIns()
      else builtIns.remember()
      before = stateNow(environment)
    },
    find() {
      // Until a module has been imported, nothing is known: its imports may change built-in functions.
      if (builtIns === undefined) return undefined
      try {
        const builtIn = builtIns.changed()
        if (builtIn !== undefined) return builtIn
        const now = stateNow(environment)
        for (const name in before) if (now[name] !== before[name]) return name
        builtIns.grow()
        return undefined
      } catch {
        // For example, the working directory has been removed.
        return 'the state of the isolate'
      }
    },
  }
}

/**
 * Returns a function that returns all variables as text. Reading them takes longer than a short task, so they are read again only after
 * one has been written.
 */
function watchEnvironment(): () => string {
  const { env } = process
  let text: string | undefined
  process.env = new Proxy(env, {
    set(_, name, value) {
      text = undefined
      return set(env, name, value)
    },
    deleteProperty(_, name) {
      text = undefined
      return deleteProperty(env, name)
    },
    defineProperty(_, name, descriptor) {
      text = undefined
      return defineProperty(env, name, descriptor)
    },
  })
  syncBuiltinESMExports()
  return () => (text ??= stringify(env))
}

function stateNow(environment: () => string): Readonly<Record<string, unknown>> {
  const { stdout, stderr } = process
  return {
    'whether properties can be added': areExtensible(),
    // A thread has those of its worker.
    'the working directory': isMainThread && process.cwd(),
    'the umask': isMainThread && process.umask(),
    // The send of a child process calls it.
    'process._send': get(process, '_send'),
    'process.env': process.env,
    'the environment': environment(),
    'the exit code': process.exitCode,
    'process.stdout': stdout,
    'process.stdout.write': stdout.write,
    'the standard output': stdout.writable,
    'process.stderr': stderr,
    'process.stderr.write': stderr.write,
    'the standard error': stderr.writable,
    'the capture of uncaught errors': process.hasUncaughtExceptionCaptureCallback(),
    'the listeners of uncaughtException': process.listenerCount('uncaughtException'),
    'the listeners of unhandledRejection': process.listenerCount('unhandledRejection'),
    'the listeners of message': process.listenerCount('message'),
    'the listeners of disconnect': process.listenerCount('disconnect'),
    'the listeners of SIGTERM': process.listenerCount('SIGTERM'),
    'the listeners of SIGINT': process.listenerCount('SIGINT'),
    'the listeners of SIGHUP': process.listenerCount('SIGHUP'),
  }
}

/** Code that adds a property to an object cannot do so if the object has been frozen. */
function areExtensible(): boolean {
  return isExtensible(globalThis) && isExtensible(Error) && isExtensible(process)
}
