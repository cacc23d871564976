// Defines the port that converts payloads between the form that Bullpen uses and the form that is stored.

/**
 * Encodes payloads before they are stored and decodes them after they are read, for example to encrypt or to compress them. A
 * payload is a task's input, its output, or the result of one of its steps, as a JSON string. Everything else is stored without
 * the codec: names, ids, tags, metadata, timeouts, progress, and attempt records with their error messages.
 *
 * Every process that reads a payload needs a codec that can decode it. Payloads that were stored without a codec can be read by
 * every process, so you can add a codec while tasks are waiting: first to the workers, then to the API.
 */
export interface PayloadCodec {
  /** Returns the string to store. Called on the event loop, once for each payload that is written. Must not throw. */
  encode(json: string): string
  /**
   * Returns the original JSON string. Called on the event loop, once for each payload that is read. If this method throws, an
   * attempt fails with `unreadable_payload` and is retried, and a lookup returns the task without the payload.
   */
  decode(stored: string): string
}
