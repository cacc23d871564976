// Notices what a task has changed of what all code shares, and undoes it.
//
// Handlers may have replaced any method, such as those of arrays, so the code that runs after a task calls only functions that were taken
// when this file was loaded, uses no iterator, and assigns to no index of an array. A comparison reads descriptors, because a getter could
// run the code of a task. It takes about half a millisecond.
import { compareFrequent } from './frequent-built-ins.ts'
import { fieldsOf, pathOf, type SharedProperty, type SharedPrototype, sharedProperties } from './shared-properties.ts'

const { ownKeys, get, set, has, getOwnPropertyDescriptor, getPrototypeOf, isExtensible } = Reflect
const { defineProperty, deleteProperty, setPrototypeOf } = Reflect
const { assign, create } = Object
const toNumber = Number

/** The paths of properties, joined by commas. Undefined if there are none. */
type Paths = string | undefined
type Note = (path: string, isRestored: boolean) => void

export interface BuiltIns {
  /** Accepts everything as it is now. */
  remember(): void
  /** Adds what Node has loaded since. Call this only if nothing has changed. */
  grow(): void
  /** Returns what has changed since, or has been frozen, if anything has. */
  changed(): string | undefined
  /** Undoes all changes, except that what is frozen remains so. `lost` are the changes that cannot be undone for this reason. */
  restore(): { readonly restored: Paths; readonly lost: Paths }
  /** Returns a function that returns whether the built-in functions which almost all code uses are as they are now. */
  compareFrequent(): () => boolean
}

/** Accepts everything as it is now, which takes about 10 ms. */
export function watchBuiltIns(): BuiltIns {
  const { properties, prototypes, grow } = sharedProperties()
  return {
    grow,
    remember() {
      for (const each of prototypes) rememberPrototype(each)
      for (const each of properties) rememberProperty(each)
      grow()
    },
    changed() {
      for (let at = 0; at < prototypes.length; at++) {
        const each = prototypes[at] as SharedPrototype
        if (isExtensible(each.holder) !== each.isExtensible) return `${each.path}, which is frozen`
        if (!hasSameKeys(each)) return `the properties of ${each.path}`
      }
      for (let at = 0; at < properties.length; at++) {
        const each = properties[at] as SharedProperty
        const now = getOwnPropertyDescriptor(each.holder, each.name)
        if (!isSame(each, now) || isRestricted(each, now)) return each.path
      }
      return undefined
    },
    restore() {
      let restored: Paths
      let lost: Paths
      const note: Note = (path, isRestored) => {
        if (isRestored) restored = join(restored, path)
        else lost = join(lost, path)
      }
      // What was added to Object.prototype goes first, because a descriptor would inherit it.
      for (let at = 0; at < prototypes.length; at++) {
        const each = prototypes[at] as SharedPrototype
        if (!hasSameKeys(each)) restorePrototype(each, note)
      }
      for (let at = 0; at < properties.length; at++) {
        const each = properties[at] as SharedProperty
        if (!isSame(each, getOwnPropertyDescriptor(each.holder, each.name))) note(each.path, restoreProperty(each))
      }
      return { restored, lost }
    },
    compareFrequent: () => compareFrequent(properties),
  }
}

function rememberPrototype(each: SharedPrototype): void {
  each.keys = ownKeys(each.holder)
  each.parent = getPrototypeOf(each.holder)
  each.isExtensible = isExtensible(each.holder)
}

function rememberProperty(each: SharedProperty): void {
  Object.assign(each, fieldsOf(each, getOwnPropertyDescriptor(each.holder, each.name)))
}

function isSame(each: SharedProperty, now: PropertyDescriptor | undefined): boolean {
  if (now === undefined || !each.isThere) return (now !== undefined) === each.isThere
  if (now.get !== each.getter || now.set !== each.setter) return false
  return (each.isRead ? get(each.holder, each.name) : now.value) === each.value
}

/** Code that assigns to an object that inherits a read-only property fails. */
function isRestricted(each: SharedProperty, now: PropertyDescriptor | undefined): boolean {
  return now !== undefined && (now.writable !== each.writable || now.configurable !== each.configurable)
}

/** Removed properties are found one by one. */
function hasSameKeys({ holder, parent, keys }: SharedPrototype): boolean {
  return ownKeys(holder).length <= keys.length && getPrototypeOf(holder) === parent
}

function restoreProperty(each: SharedProperty): boolean {
  const { holder, name, value, getter, setter, writable, enumerable, configurable } = each
  // Without a prototype, the descriptor inherits nothing that a task has added to Object.prototype.
  const descriptor: PropertyDescriptor = create(null)
  if (writable === undefined) assign(descriptor, { enumerable, configurable, get: getter, set: setter })
  else assign(descriptor, { enumerable, configurable, writable, value })
  if (each.isThere) defineProperty(holder, name, descriptor)
  else deleteProperty(holder, name)
  if (each.isRead) set(holder, name, value)
  return isSame(each, getOwnPropertyDescriptor(holder, name))
}

/** Leaves new properties that only code which knows them uses, such as a method that a library has added to a class of Node. */
function restorePrototype(each: SharedPrototype, note: Note): void {
  const { holder, path, parent } = each
  if (getPrototypeOf(holder) !== parent) note(`the prototype of ${path}`, setPrototypeOf(holder, parent))
  const now = ownKeys(holder)
  for (let at = 0; at < now.length; at++) {
    const name = now[at] as string | symbol
    if (!includes(each.keys, name) && isLookedUp(each, name)) note(pathOf(path, name), deleteProperty(holder, name))
  }
  each.keys = ownKeys(holder)
}

/** Returns whether code that does not know a new property comes across it. All objects inherit those of Object.prototype. */
function isLookedUp({ holder, parent }: SharedPrototype, name: string | symbol): boolean {
  if (parent === null || typeof name === 'symbol' || name === 'then' || name === 'toJSON') return true
  return has(parent, name) || (holder === Array.prototype && name === `${toNumber(name)}`)
}

function includes(keys: readonly (string | symbol)[], name: string | symbol): boolean {
  for (let at = 0; at < keys.length; at++) if (keys[at] === name) return true
  return false
}

function join(paths: Paths, path: string): string {
  return paths === undefined ? path : `${paths}, ${path}`
}
