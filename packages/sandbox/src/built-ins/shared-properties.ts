// Lists the properties that all code in a thread or process shares: those of the global objects, of the objects from which others inherit,
// of the process, and of the loaded modules of Node.
//
// Objects in which Node keeps state are left out, and so is what npm modules share. What Node loads later is added once it is loaded.
import { EventEmitter } from 'node:events'
import process from 'node:process'
import { eagerGlobals, LAZY_GLOBALS } from './lazy-globals.ts'
import { ABSENT, HIDDEN, PATHS, READ, STATE } from './special-properties.ts'

const { ownKeys, get, getOwnPropertyDescriptor, getPrototypeOf, isExtensible } = Reflect

/** A getter of Symbol.prototype, which a task may replace. */
const describe = Function.prototype.call.bind(
  getOwnPropertyDescriptor(Symbol.prototype, 'description')?.get as () => string,
) as (symbol: symbol) => string

/** A property as it was. Its fields are not a descriptor, because that would inherit what a task adds to Object.prototype. */
export interface SharedProperty {
  /** How programs write it, such as `Array.prototype.map`. */
  readonly path: string
  readonly holder: object
  readonly name: string | symbol
  /** Whether a setter replaces what the getter returns, so that the value has to be read as well. */
  readonly isRead: boolean
  isThere: boolean
  /** The value, or what the getter returns if it is read. */
  value: unknown
  getter: (() => unknown) | undefined
  setter: ((value: unknown) => void) | undefined
  writable: boolean | undefined
  configurable: boolean | undefined
  enumerable: boolean | undefined
}

/** An object from which others inherit, so that properties which are added to it change them too. */
export interface SharedPrototype {
  readonly path: string
  readonly holder: object
  parent: object | null
  keys: readonly (string | symbol)[]
  isExtensible: boolean
}

export interface SharedProperties {
  readonly properties: readonly SharedProperty[]
  readonly prototypes: readonly SharedPrototype[]
  /** Adds what Node has loaded since. Call this only if nothing has been changed. */
  grow(): void
}

/** Takes 10 ms. Call this before any code runs that could change something. */
export function sharedProperties(): SharedProperties {
  const properties: SharedProperty[] = []
  const prototypes: SharedPrototype[] = []
  const seen = new Set<object>()

  const record = (path: string, holder: object, name: string | symbol, isRead = READ.has(path)): void => {
    const descriptor = getOwnPropertyDescriptor(holder, name)
    properties.push({ path, holder, name, isRead, ...fieldsOf({ holder, name, isRead }, descriptor) })
  }
  const addProperty = (path: string, holder: object, name: string | symbol): void => {
    if (STATE.has(path)) return
    const descriptor = getOwnPropertyDescriptor(holder, name) as PropertyDescriptor
    if (READ.has(path) || canChange(name, descriptor)) record(path, holder, name)
    if (name === 'prototype') addPrototype(path, descriptor.value)
    else if (name !== 'constructor') addValue(path, descriptor.value)
  }
  /** Adds a function or a plain object, and what can be reached from it. */
  const addValue = (path: string, value: unknown): void => {
    const isFunction = typeof value === 'function'
    if (!(isFunction || isPlain(value)) || seen.has(value)) return
    seen.add(value)
    if (isFunction) addPrototype(`the prototype of ${path}`, getPrototypeOf(value))
    for (const name of ownKeys(value)) {
      // The name and the length of a function change nothing.
      if (!isFunction || (name !== 'name' && name !== 'length')) addProperty(pathOf(path, name), value, name)
    }
  }
  const addPrototype = (reached: string, holder: object | null): void => {
    if (holder === null || seen.has(holder) || isUnused(holder)) return
    seen.add(holder)
    const [path, parent, keys] = [PATHS.get(holder) ?? reached, getPrototypeOf(holder), ownKeys(holder)]
    prototypes.push({ path, holder, parent, keys, isExtensible: isExtensible(holder) })
    addPrototype(`the prototype of ${path}`, parent)
    for (const name of keys) addProperty(pathOf(path, name), holder, name)
  }
  /** Adds the methods of an object that has a state of its own. A property of its own could hide an inherited one. */
  const addInstance = (path: string, holder: object): void => {
    seen.add(holder)
    const own = new Set(ownKeys(holder))
    for (const name of allKeys(holder)) {
      if (typeof name === 'symbol' || name.startsWith('_')) continue
      if (own.has(name)) addProperty(pathOf(path, name), holder, name)
      else record(pathOf(path, name), holder, name)
    }
    addPrototype(`the prototype of ${path}`, getPrototypeOf(holder))
  }
  const addGlobal = (name: string): void => {
    const descriptor = getOwnPropertyDescriptor(globalThis, name)
    if (descriptor === undefined || !canChange(name, descriptor)) return
    const isRead = descriptor.set !== undefined
    record(name, globalThis, name, isRead)
    addValue(name, isRead ? get(globalThis, name) : descriptor.value)
  }

  for (const [path, instance] of HIDDEN) addPrototype(path, getPrototypeOf(instance()))
  addValue('EventEmitter', EventEmitter)
  for (const name of eagerGlobals()) addGlobal(name)
  for (const [path, holder, names] of ABSENT) for (const name of names) record(pathOf(path, name), holder, name)
  addInstance('process', process)
  addInstance('console', console)
  addInstance('performance', performance)

  const loadList = get(process, 'moduleLoadList') as readonly string[]
  let loaded = 0
  const grow = (): void => {
    for (; loaded < loadList.length; loaded++) {
      const id = loadList[loaded]?.match(/^NativeModule (.+)$/)?.[1] ?? ''
      for (const name of LAZY_GLOBALS.get(id) ?? []) addGlobal(name)
      if (id === 'internal/crypto/webcrypto') addInstance('crypto', crypto)
      // Those with an underscore are parts of others, and Node warns of some.
      if (/^[a-z]/.test(id) && !id.startsWith('internal/')) addValue(id, process.getBuiltinModule(`node:${id}`))
    }
  }
  grow()
  return { properties, prototypes, grow }
}

export function fieldsOf(
  { holder, name, isRead }: Pick<SharedProperty, 'holder' | 'name' | 'isRead'>,
  found: PropertyDescriptor | undefined,
): Omit<SharedProperty, 'path' | 'holder' | 'name' | 'isRead'> {
  return {
    isThere: found !== undefined,
    value: isRead ? get(holder, name) : found?.value,
    getter: found?.get,
    setter: found?.set,
    writable: found?.writable,
    configurable: found?.configurable,
    enumerable: found?.enumerable,
  }
}

function canChange(name: string | symbol, { configurable, writable, value }: PropertyDescriptor): boolean {
  return (configurable || writable === true) && !(name === 'prototype' && isUnused(value))
}

/** Most functions that are not arrow functions have a prototype, although they are not called with `new`. */
function isUnused(prototype: unknown): boolean {
  return isPlain(prototype) && ownKeys(prototype).length === 1 && Object.hasOwn(prototype, 'constructor')
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const parent = getPrototypeOf(value)
  return parent === null || parent === Object.prototype || parent === Array.prototype
}

function allKeys(holder: object): ReadonlySet<string | symbol> {
  const parent = getPrototypeOf(holder)
  const inherited = parent === null || parent === Object.prototype ? [] : allKeys(parent)
  return new Set([...ownKeys(holder), ...inherited])
}

export function pathOf(path: string, name: string | symbol): string {
  return typeof name === 'symbol' ? `${path}[${describe(name)}]` : `${path}.${name}`
}
