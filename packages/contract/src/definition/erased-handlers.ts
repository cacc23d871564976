// Converts between the typed handlers of a catalogue and a plain record by the names of the tasks.
//
// `Handlers` has checked the type of each handler's context where the handlers were defined. Code that treats all handlers alike looks
// them up by name, which that type cannot express. These two functions are the only places that forget and restore it.
import type { Catalogue } from './catalogue.ts'
import type { Handler, Handlers, Resources } from './handler.ts'

/** The handlers by the names of their tasks. A handler may be missing, because plain JavaScript can leave it out. */
export type HandlersByName = Readonly<Record<string, Handler | undefined>>

/**
 * Returns the handlers, which can be looked up by any name and are all called in the same way. A task may have the name of a method of
 * all objects, such as `constructor`, so the record does not inherit any.
 */
export function handlersByName<C extends Catalogue, R extends Resources>(handlers: Handlers<C, R>): HandlersByName {
  const given = handlers as unknown as HandlersByName
  return typeof given === 'object' && given !== null ? Object.assign(Object.create(null), given) : given
}

/** Returns the same record as the handlers of the catalogue. Each handler must be that of the task with its name. */
export function toHandlers<C extends Catalogue, R extends Resources = object>(
  _catalogue: C,
  byName: Readonly<Record<string, unknown>>,
): Handlers<C, R> {
  return byName as unknown as Handlers<C, R>
}
