"""Messages as rhea 3.0.5 encodes them (Node.js 20.20.2, ``rhea.message.encode``), so that tests need no Node.js::

    text: {message_id: 'r-text', body: 'text', subject: 'order', correlation_id: 'c', application_properties:
        {n: 7, big: 2 ** 32, neg: -7, f: 1.5, b: true, s: 'text'}}
    json: {message_id: 'r-json', body: m.data_section(Buffer.from('{"a":1}')), content_type: 'application/json',
        application_properties: {s: 'text'}}
    bytes: {message_id: 'r-bytes', body: Buffer.from([0, 255]), application_properties: {n: 7}}
    map: {message_id: 'r-map', body: {a: 1, b: 'x', c: true, d: 2.5, e: null}, application_properties: {s:
        'text'}}
    list: {message_id: 'r-list', body: ['a', 1, -1, null]}
    typed: {message_id: 'r-typed', body: 'text', application_properties: {at: new Date(1760000000000), u:
        t.wrap_uuid(UUID), y: t.wrap_symbol('sym'), n: 7}}
    uuid: {message_id: t.wrap_uuid(UUID), correlation_id: t.wrap_ulong(7), body: 'text', ttl: 60000}
    number: {message_id: 'r-number', body: 5}

All have ``durable: true`` and ``creation_time: new Date(1760000000000)``. ``t`` is ``rhea.types``, ``m`` is
``rhea.message``, and ``UUID`` a buffer of 01234567-89ab-cdef-0123-456789abcdef.
"""

__all__ = ["RHEA"]

RHEA = {
    "text": bytes.fromhex(
        "005370d0000000050000000141005373d0000000250000000aa106722d746578744040a1056f7264657240a1016340404083"
        "00000199c82cc000005374d1000000370000000ca1016e5207a103626967800000000100000000a1036e656754f9a1016682"
        "3ff8000000000000a1016241a10173a10474657874005377a10474657874"
    ),
    "json": bytes.fromhex(
        "005370d0000000050000000141005373d00000002e0000000aa106722d6a736f6e4040404040a3106170706c69636174696f"
        "6e2f6a736f6e40408300000199c82cc000005374d10000000d00000002a10173a10474657874005375a0077b2261223a317d"
    ),
    "bytes": bytes.fromhex(
        "005370d0000000050000000141005373d00000001e0000000aa107722d627974657340404040404040408300000199c82cc0"
        "00005374d10000000900000002a1016e5207005377a00200ff"
    ),
    "map": bytes.fromhex(
        "005370d0000000050000000141005373d00000001c0000000aa105722d6d617040404040404040408300000199c82cc00000"
        "5374d10000000d00000002a10173a10474657874005377d1000000230000000aa101615201a10162a10178a1016341a10164"
        "824004000000000000a1016540"
    ),
    "list": bytes.fromhex(
        "005370d0000000050000000141005373d00000001d0000000aa106722d6c69737440404040404040408300000199c82cc000"
        "005377d00000000c00000004a10161520154ff40"
    ),
    "typed": bytes.fromhex(
        "005370d0000000050000000141005373d00000001e0000000aa107722d747970656440404040404040408300000199c82cc0"
        "00005374d10000003200000008a10261748300000199c82cc000a10175980123456789abcdef0123456789abcdefa10179a3"
        "0373796da1016e5207005377a10474657874"
    ),
    "uuid": bytes.fromhex(
        "005370d00000000b000000034140700000ea60005373d0000000270000000a980123456789abcdef0123456789abcdef4040"
        "404053074040408300000199c82cc000005377a10474657874"
    ),
    "number": bytes.fromhex(
        "005370d0000000050000000141005373d00000001f0000000aa108722d6e756d62657240404040404040408300000199c82c"
        "c0000053775205"
    ),
}
